import { useCallback, useState } from "react";

import { ApiError, ask, get, send } from "../api/client";
import { type AgentBody, type AgentDetailView, type AgentPatch, type AgentView, type MeView } from "../api/schema";
import { refreshAgents } from "../state/agents";
import { confirmed } from "../state/confirmation";
import { go, hrefOf } from "../state/route";
import { toast } from "../state/toasts";
import { useLoaded } from "../state/use-loaded";
import { problemOf } from "../thread/thread";
import { type Problem } from "../thread/reduce";
import { useWords, type Words } from "../words";
import { AgentDocuments } from "./agent-documents";
import { AgentGeneral } from "./agent-general";
import { AgentLimits } from "./agent-limits";
import { AgentPrompt } from "./agent-prompt";
import { AgentServers } from "./agent-servers";
import { ProblemBar, toldProblem } from "./problem-bar";
import { Tabs } from "./tabs";
import { TopBar } from "./top-bar";

interface Props {
  /** `new` for one that is to be made. */
  id: string;
  me: MeView;
  onMenu: () => void;
}

/** Changes an agent; the error is thrown. */
export type Change = (patch: AgentPatch) => Promise<AgentDetailView>;

const toAgents = (words: Words) => ({ href: hrefOf({ name: "agents" }), label: words.backToAgents });

const NEW: AgentBody = { name: "", description: "", systemPrompt: "", visibility: "private", primaryRoleId: "assistant" };

export function AgentPage({ id, onMenu }: Props) {
  return id === "new" ? <NewAgent onMenu={onMenu} /> : <KnownAgent id={id} onMenu={onMenu} />;
}

function NewAgent({ onMenu }: { onMenu: () => void }) {
  const words = useWords();
  const [problem, setProblem] = useState<Problem | null>(null);
  const create = async (body: AgentBody) => {
    try {
      const made = await send<AgentView>("POST", "/api/agents", body);
      await refreshAgents();
      go({ name: "agent", id: made.id });
    } catch (error) {
      setProblem(problemOf(error));
    }
  };
  return (
    <div className="page">
      <TopBar title={words.newAgent} onMenu={onMenu} back={toAgents(words)} />
      <div className="content">
        {problem && <ProblemBar problem={problem} onDismiss={() => setProblem(null)} />}
        <AgentGeneral agent={NEW} action={words.createAgent} onSave={create} />
      </div>
    </div>
  );
}

function KnownAgent({ id, onMenu }: { id: string; onMenu: () => void }) {
  const words = useWords();
  const { loaded, again, set } = useLoaded(
    useCallback((signal: AbortSignal) => get<AgentDetailView>(`/api/agents/${id}`, {}, signal), [id]),
  );
  const [problem, setProblem] = useState<Problem | null>(null);
  if (loaded.state !== "ready")
    return (
      <div className="page">
        <TopBar title={words.agentSettings} onMenu={onMenu} back={toAgents(words)} />
        <p className="hint">{loaded.state === "loading" ? words.loading : toldProblem(words, loaded.problem)}</p>
      </div>
    );
  const agent = loaded.value;
  const change: Change = async (patch) => {
    const headers: Record<string, string> = agent.version === undefined ? {} : { "If-Match": `"${agent.version}"` };
    const answer = await ask(`/api/agents/${id}`, { method: "PATCH", body: patch, headers });
    const changed = (await answer.json()) as AgentDetailView;
    set(changed);
    setProblem(null);
    void refreshAgents();
    return changed;
  };
  const save = async (patch: AgentPatch) => {
    try {
      await change(patch);
      toast(words.saved);
    } catch (error) {
      setProblem(await told(error, words, again));
    }
  };
  const remove = async () => {
    const question = { title: words.deleteAgent, text: words.deleteAgentSure, action: words.delete };
    if (!(await confirmed(question))) return;
    await send("DELETE", `/api/agents/${id}`);
    await refreshAgents();
    go({ name: "new", agentId: null });
  };
  return (
    <div className="page">
      <TopBar title={agent.name} subtitle={words.agentSettings} onMenu={onMenu} back={toAgents(words)}>
        <button type="button" onClick={() => go({ name: "new", agentId: id })}>
          {words.talkTo}
        </button>
      </TopBar>
      {problem && <ProblemBar problem={problem} onDismiss={() => setProblem(null)} />}
      {agent.settings ? (
        <Tabs
          key={agent.id}
          tabs={[
            {
              name: words.general,
              content: (
                <AgentGeneral
                  key={agent.version}
                  agent={agent}
                  action={words.save}
                  onSave={save}
                  onDelete={agent.isDefault ? undefined : () => void remove()}
                />
              ),
            },
            { name: words.prompt, content: <AgentPrompt key={agent.version} agentId={agent.id} /> },
            { name: words.tools, content: <AgentServers agent={agent} onChange={change} /> },
            { name: words.documents, content: <AgentDocuments agentId={agent.id} /> },
            { name: words.limits, content: <AgentLimits key={agent.version} settings={agent.settings} onSave={save} /> },
          ]}
        />
      ) : (
        <p className="hint">{words.onlyOwner}</p>
      )}
    </div>
  );
}

/** Somebody else's change is shown instead of lost. */
async function told(error: unknown, words: Words, again: () => Promise<void>): Promise<Problem> {
  if (error instanceof ApiError && error.code === "PRECONDITION_FAILED") {
    await again();
    return { code: error.code, message: words.changedMeanwhile };
  }
  return problemOf(error);
}
