import { type AgentView } from "@threadkeep/client";

import { useAgentWords } from "../words/agents";
import { codeOf, remoteHostOf } from "./engine";

/** That an agent is a program, and whether it is connected, or that another server runs it; nothing for any other. */
export function AgentEngine({ agent }: { agent: Pick<AgentView, "engine"> }) {
  const agentWords = useAgentWords();
  const code = codeOf(agent);
  const host = remoteHostOf(agent);
  if (host)
    return (
      <p className="agent-engine" data-status="ready">
        <span className="badge">{agentWords.elsewhere}</span>
        <code>{host}</code>
      </p>
    );
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
