import { type AgentView } from "@threadkeep/client";

import { useAgentWords } from "../words/agents";
import { codeOf } from "./engine";

/** That an agent is a program, which version of it, and whether it is connected; nothing for any other. */
export function AgentEngine({ agent }: { agent: Pick<AgentView, "engine"> }) {
  const agentWords = useAgentWords();
  const code = codeOf(agent);
  if (!code) return null;
  const { key, version, status, workers } = code;
  return (
    <p className="agent-engine" data-status={status}>
      <span className="badge">{agentWords.inCode}</span>
      {key && <code>{key}</code>}
      {version !== undefined && <span>{agentWords.codeVersion(version)}</span>}
      {status && <span className="status">{status === "ready" ? agentWords.programReady(workers ?? 1) : agentWords.programAbsent}</span>}
    </p>
  );
}
