import {
  ApiError,
  requestProblemOf,
  type AgentBody,
  type AgentDetailView,
  type AgentPatch,
  type AgentView,
  type MeView,
  type Problem,
} from "@threadkeep/client";
import { useCallback, useState } from "react";

import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { MissingPage } from "../chat/missing-page";
import { TopBar } from "../chat/top-bar";
import { refreshAgents } from "../state/agents";
import { confirmed } from "../state/confirmation";
import { refreshModelsOf } from "../state/models";
import { go, hrefOf, rename, type AgentTab } from "../state/route";
import { forgetUnsaved, useLeaveQuestion, useUnsavedTabs } from "../state/unsaved";
import { ProblemBar, describeProblem } from "../ui/problem-bar";
import { Tabs } from "../ui/tabs";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { useAgentWords, type AgentWords } from "../words/agents";
import { usePermissionWords } from "../words/permissions";
import { useRatingWords } from "../words/ratings";
import { AgentDocuments } from "./agent-documents";
import { AgentEngine } from "./agent-engine";
import { AgentFeedback } from "./agent-feedback";
import { AgentGeneral } from "./agent-general";
import { AgentLimits } from "./agent-limits";
import { AgentPermissions } from "./agent-permissions";
import { AgentPrompt } from "./agent-prompt";
import { AgentServers, type Change } from "./agent-servers";

interface Props {
  /** `new` to create an agent. */
  id: string;
  /** The open tab, if not the first. */
  tab: AgentTab | undefined;
  me: MeView;
  onMenu: () => void;
}

const toAgents = (agentWords: AgentWords) => ({ href: hrefOf({ name: "agents" }), label: agentWords.backToAgents });

const NEW: AgentBody = { name: "", description: "", systemPrompt: "", visibility: "private", primaryRoleId: "assistant" };

export function AgentPage({ id, tab, onMenu }: Props) {
  return id === "new" ? <NewAgent onMenu={onMenu} /> : <KnownAgent id={id} tab={tab} onMenu={onMenu} />;
}

function NewAgent({ onMenu }: { onMenu: () => void }) {
  const words = useWords();
  const agentWords = useAgentWords();
  const [problem, setProblem] = useState<Problem | null>(null);
  useLeaveQuestion(words);
  const create = async (body: AgentBody) => {
    const made = await api.send<AgentView>("POST", "/api/agents", body);
    forgetUnsaved();
    refreshAgents().catch(() => {}); // read again when they are needed
    go({ name: "agent", id: made.id });
  };
  return (
    <div className="page">
      <TopBar title={words.newAgent} onMenu={onMenu} back={toAgents(agentWords)} />
      <div className="content">
        {problem && <ProblemBar problem={problem} onDismiss={() => setProblem(null)} />}
        <AgentGeneral
          agent={NEW}
          action={agentWords.createAgent}
          onSave={create}
          onProblem={(error) => setProblem(requestProblemOf(error))}
        />
      </div>
    </div>
  );
}

function KnownAgent({ id, tab, onMenu }: Omit<Props, "me">) {
  const words = useWords();
  const agentWords = useAgentWords();
  const ratingWords = useRatingWords();
  const permissionWords = usePermissionWords();
  const { loaded, again, set } = useLoaded(
    useCallback((signal: AbortSignal) => api.get<AgentDetailView>(`/api/agents/${id}`, {}, signal), [id]),
  );
  const [problem, setProblem] = useState<Problem | null>(null);
  const unsaved = useUnsavedTabs();
  useLeaveQuestion(words);
  if (loaded.state === "failed" && loaded.problem.code === "AGENT_NOT_FOUND") return <MissingPage what="agent" onMenu={onMenu} />;
  if (loaded.state !== "ready")
    return (
      <div className="page">
        <TopBar title={words.agentSettings} onMenu={onMenu} back={toAgents(agentWords)} />
        <p className="hint">{loaded.state === "loading" ? words.loading : describeProblem(words, loaded.problem)}</p>
      </div>
    );
  const agent = loaded.value;
  const change: Change = async (patch) => {
    const headers: Record<string, string> = agent.version === undefined ? {} : { "If-Match": `"${agent.version}"` };
    const response = await api.request(`/api/agents/${id}`, { method: "PATCH", body: patch, headers });
    const changed = (await response.json()) as AgentDetailView;
    set(changed);
    setProblem(null);
    void refreshAgents();
    void refreshModelsOf(id);
    return changed;
  };
  const save = async (patch: AgentPatch) => {
    await change(patch);
    toast(agentWords.saved);
  };
  const refused = (error: unknown) => void reloadOnConflict(error, agentWords, again).then(setProblem);
  const remove = async () => {
    const question = { title: agentWords.deleteAgent, text: agentWords.deleteAgentSure, action: words.delete };
    if (!(await confirmed(question))) return;
    try {
      await api.send("DELETE", `/api/agents/${id}`);
    } catch (error) {
      return setProblem(requestProblemOf(error));
    }
    forgetUnsaved();
    refreshAgents().catch(() => {}); // read again when they are needed
    go({ name: "agents" });
  };
  return (
    <div className="page">
      <TopBar title={agent.name} subtitle={words.agentSettings} onMenu={onMenu} back={toAgents(agentWords)}>
        <button type="button" onClick={() => go({ name: "new", agentId: id })}>
          {agentWords.startChat}
        </button>
      </TopBar>
      {problem && <ProblemBar problem={problem} onDismiss={() => setProblem(null)} />}
      <AgentEngine agent={agent} />
      {agent.settings ? (
        <Tabs<AgentTab | undefined>
          key={agent.id}
          open={tab}
          onOpen={(next) => rename({ name: "agent", id, tab: next })}
          tabs={[
            {
              id: undefined,
              name: agentWords.general,
              isChanged: unsaved.has("general"),
              content: (
                <AgentGeneral
                  agent={agent}
                  action={words.save}
                  onSave={(_, changes) => save(changes)}
                  onProblem={refused}
                  onDelete={agent.isDefault ? undefined : () => void remove()}
                />
              ),
            },
            {
              id: "prompt",
              name: agentWords.prompt,
              isChanged: unsaved.has("prompt"),
              content: <AgentPrompt agentId={agent.id} version={agent.version} />,
            },
            {
              id: "tools",
              name: agentWords.tools,
              isChanged: unsaved.has("tools"),
              content: <AgentServers agent={agent} onChange={change} />,
            },
            {
              id: "permissions",
              name: permissionWords.title,
              isChanged: unsaved.has("permissions"),
              content: <AgentPermissions agent={agent} onSave={save} onProblem={refused} />,
            },
            { id: "documents", name: agentWords.documents, content: <AgentDocuments agentId={agent.id} /> },
            { id: "feedback", name: ratingWords.feedback, content: <AgentFeedback agentId={agent.id} /> },
            {
              id: "limits",
              name: agentWords.limits,
              isChanged: unsaved.has("limits"),
              content: <AgentLimits settings={agent.settings} onSave={save} onProblem={refused} />,
            },
          ]}
        />
      ) : (
        <p className="hint">{agentWords.onlyOwner}</p>
      )}
    </div>
  );
}

/** Shows somebody else's change instead of losing it; what was typed stays on top of it. */
async function reloadOnConflict(error: unknown, agentWords: AgentWords, again: () => Promise<void>): Promise<Problem> {
  if (error instanceof ApiError && error.code === "PRECONDITION_FAILED") {
    await again();
    return { code: error.code, message: agentWords.changedMeanwhile };
  }
  return requestProblemOf(error);
}
