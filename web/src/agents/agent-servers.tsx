import { requestProblemOf, type AgentDetailView, type AgentPatch, type McpServerSettingsView, type Problem } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { KeyRound } from "lucide-react";
import { useState } from "react";

import { token } from "../api/api";
import { confirmed } from "../state/confirmation";
import { linkWithToken, openCommand } from "../state/own-token";
import { hrefOf } from "../state/route";
import { Callout } from "../ui/callout";
import { CopyButton } from "../ui/copy-button";
import { ProblemBar } from "../ui/problem-bar";
import { WithCode } from "../ui/with-code";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";
import { usePermissionWords } from "../words/permissions";
import { AgentOthers } from "./agent-others";
import { lacksToken, makesTokenDue } from "./first-program";
import { ServerCard } from "./server-card";
import { ServerForm } from "./server-form";

/** Changes an agent; throws the error. */
export type Change = (patch: AgentPatch) => Promise<AgentDetailView>;

interface Props {
  agent: AgentDetailView;
  onChange: Change;
}

/** The MCP servers whose tools an agent has: ours, which cannot be changed, and its own. */
export function AgentServers({ agent, onChange }: Props) {
  const words = useWords();
  const agentWords = useAgentWords();
  const permissionWords = usePermissionWords();
  const [adding, setAdding] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [tokenNote, setTokenNote] = useState<"lacking" | "required" | null>(null);
  const write = async (servers: Record<string, McpServerSettingsView | null>) => {
    await onChange({ settings: { mcpServers: servers } });
    setProblem(null);
  };
  const refused = (error: unknown) => setProblem(requestProblemOf(error));
  const choose = (agents: string[]) =>
    onChange({ settings: { agents } }).then(() => setProblem(null), refused);
  const add = async (servers: Record<string, McpServerSettingsView>) => {
    setProblem(null); // the form shows its own faults
    setTokenNote(null);
    try {
      const isFirst = await makesTokenDue(agent.id, servers);
      if (isFirst && !(await confirmed({ ...agentWords.firstProgram, isHarmless: true }))) return;
      await write(servers);
      if (isFirst) setTokenNote("required");
    } catch (error) {
      if (!lacksToken(error)) throw error;
      return setTokenNote("lacking");
    }
    setAdding(false);
  };
  const cancel = () => {
    setAdding(false);
    setTokenNote(null);
  };
  const remove = async (name: string) => {
    const question = { title: agentWords.removeServer(name), text: agentWords.removeServerSure, action: words.remove };
    if (await confirmed(question)) await write({ [name]: null });
  };
  return (
    <div className="form">
      <p className="hint">{agentWords.serversHint}</p>
      <p className="hint">
        {permissionWords.where} <a href={hrefOf({ name: "agent", id: agent.id, tab: "permissions" })}>{permissionWords.title}</a>
      </p>
      <ul className="cards">
        {agent.mcpServers?.map((it) => (
          <ServerCard
            key={it.name}
            agentId={agent.id}
            server={it}
            onRemove={() => remove(it.name).catch(refused)}
            onToggle={() => write({ [it.name]: { disabled: !it.disabled } }).catch(refused)}
          />
        ))}
      </ul>
      {agent.engine?.kind !== "code" && <AgentOthers agent={agent} onChoose={(agents) => void choose(agents)} />}
      {problem && <ProblemBar problem={problem} onDismiss={() => setProblem(null)} />}
      {tokenNote === "lacking" && <TokenLacking />}
      {tokenNote === "required" && <TokenRequired />}
      {adding ? (
        <ServerForm onAdd={add} onProblem={refused} onCancel={cancel} />
      ) : (
        <div className="choices">
          <button type="button" onClick={() => setAdding(true)}>
            {agentWords.addServer}
          </button>
        </div>
      )}
    </div>
  );
}

/** How this page comes by the token: its tabs share it, so what was filled in here stays. */
function TokenLacking() {
  const agentWords = useAgentWords();
  const isHere = useStore(token) !== null;
  return (
    <Callout icon={KeyRound} title={agentWords.tokenLacking} isNews>
      <p>{isHere ? agentWords.tokenCame : <WithCode text={agentWords.tokenLackingText(openCommand())} />}</p>
    </Callout>
  );
}

/** What the first program has changed, and the way back in. */
function TokenRequired() {
  const agentWords = useAgentWords();
  const link = linkWithToken();
  return (
    <Callout icon={KeyRound} title={agentWords.tokenRequired} isNews>
      <p>
        <WithCode text={agentWords.tokenRequiredText(openCommand())} />
      </p>
      <p>
        {agentWords.othersNeedKeys} <a href={hrefOf({ name: "keys" })}>{agentWords.apiKeys}</a>
      </p>
      {link && (
        <div className="choices">
          <CopyButton className="" text={link} label={agentWords.copySignedInLink} isNamed />
        </div>
      )}
    </Callout>
  );
}
