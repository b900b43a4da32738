import { requestProblemOf, type AgentDetailView, type AgentPatch, type McpServerSettingsView, type Problem } from "@threadkeep/client";
import { useState } from "react";

import { confirmed } from "../state/confirmation";
import { hrefOf } from "../state/route";
import { ProblemBar } from "../ui/problem-bar";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";
import { usePermissionWords } from "../words/permissions";
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
  const write = async (servers: Record<string, McpServerSettingsView | null>) => {
    await onChange({ settings: { mcpServers: servers } });
    setProblem(null);
  };
  const refused = (error: unknown) => setProblem(requestProblemOf(error));
  const add = async (servers: Record<string, McpServerSettingsView>) => {
    setProblem(null); // the form shows its own faults
    await write(servers);
    setAdding(false);
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
      {problem && <ProblemBar problem={problem} onDismiss={() => setProblem(null)} />}
      {adding ? (
        <ServerForm onAdd={add} onProblem={refused} onCancel={() => setAdding(false)} />
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
