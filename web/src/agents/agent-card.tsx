import { type AgentView, type MeView } from "@threadkeep/client";
import { Copy, Ellipsis, Globe, Lock, MessageSquarePlus, Settings, Share2, Trash2 } from "lucide-react";

import { api } from "../api/api";
import { isGuide, refreshAgents } from "../state/agents";
import { confirmed } from "../state/confirmation";
import { go, hrefOf } from "../state/route";
import { AgentFace } from "../ui/agent-face";
import { Menu } from "../ui/menu";
import { type MenuItem } from "../ui/menu-list";
import { toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";
import { codeOf, remoteHostOf } from "./engine";

interface Props {
  agent: AgentView;
  me: MeView;
}

export function AgentCard({ agent, me }: Props) {
  const words = useWords();
  const agentWords = useAgentWords();
  const { id, name, ownerId, visibility, isDefault } = agent;
  const isMine = ownerId === me.id;
  const owner = ownerId === null ? agentWords.builtIn : isMine ? words.you : ownerId;
  const description = isGuide(agent) ? words.guideDescription : agent.description;
  const [VisibilityIcon, who] = visibility === "public" ? ([Globe, agentWords.public] as const) : ([Lock, agentWords.private] as const);
  return (
    <li className="card agent-card">
      <div className="row">
        <AgentFace agent={agent} />
        <h2 id={`name-${id}`} dir="auto" title={name}>
          <a href={hrefOf(mayChange(agent) ? { name: "agent", id } : { name: "new", agentId: id })}>{name}</a>
        </h2>
        {isDefault && <span className="badge">{agentWords.defaultAgent}</span>}
        {codeOf(agent) && <span className="badge">{agentWords.inCode}</span>}
        {remoteHostOf(agent) && <span className="badge">{agentWords.elsewhere}</span>}
        <AgentMenu agent={agent} isMine={isMine} />
      </div>
      {description && (
        <p className="about" dir="auto">
          {description}
        </p>
      )}
      <p className="facts-line">
        <span dir="auto">{owner}</span>
        <span>
          <VisibilityIcon aria-hidden /> {who}
        </span>
      </p>
      <a
        className="button"
        id={`start-${id}`}
        href={hrefOf({ name: "new", agentId: id })}
        aria-labelledby={`start-${id} name-${id}`}
      >
        <MessageSquarePlus aria-hidden /> {agentWords.startChat}
      </a>
    </li>
  );
}

function AgentMenu({ agent, isMine }: { agent: AgentView; isMine: boolean }) {
  const words = useWords();
  const agentWords = useAgentWords();
  const { id, name, visibility, isDefault } = agent;
  const path = `/api/agents/${id}`;
  const isChangeable = mayChange(agent);
  const run = (work: () => Promise<void>) => () => {
    work().catch((error: unknown) => toastProblem(words, error));
  };
  const duplicate = async () => {
    const made = await api.send<AgentView>("POST", `${path}/duplicate`);
    await refreshAgents();
    toast(agentWords.duplicated(name), { label: words.open, run: () => go({ name: "agent", id: made.id }) });
  };
  const share = async () => {
    if (visibility === "private" && isMine) {
      const question = {
        title: agentWords.shareAgent(name),
        text: agentWords.sharePrivate,
        action: agentWords.makePublic,
        isHarmless: true,
      };
      if (!(await confirmed(question))) return;
      await api.send("PATCH", path, { visibility: "public" });
      await refreshAgents();
    }
    const link = new URL(hrefOf({ name: "new", agentId: id }), document.baseURI).href;
    // Without TLS there is no clipboard API: then show the link for copying.
    if (!("clipboard" in navigator)) return toast(link);
    await navigator.clipboard.writeText(link);
    toast(agentWords.linkCopied);
  };
  const remove = async () => {
    const question = { title: agentWords.deleteNamedAgent(name), text: agentWords.deleteAgentSure, action: words.delete };
    if (!(await confirmed(question))) return;
    await api.send("DELETE", path);
    await refreshAgents();
    toast(words.deleted(name));
  };
  const items: (MenuItem | false)[] = [
    isChangeable && { label: words.settings, icon: Settings, run: () => go({ name: "agent", id }) },
    isChangeable && { label: agentWords.duplicate, icon: Copy, run: run(duplicate) },
    { label: agentWords.share, icon: Share2, run: run(share) },
  ];
  const dangerous: (MenuItem | false)[] = [
    isChangeable && !isDefault && { label: words.delete, icon: Trash2, isDangerous: true, run: run(remove) },
  ];
  return (
    <Menu
      label={agentWords.moreActionsFor(name)}
      groups={[items, dangerous].map((group) => ({ items: group.filter((it) => it !== false) }))}
    >
      <Ellipsis aria-hidden />
    </Menu>
  );
}

/** The server shows settings to those who may change them. */
function mayChange({ settings }: AgentView): boolean {
  return settings !== undefined;
}
