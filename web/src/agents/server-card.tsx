import { requestProblemOf, type McpServerView } from "@threadkeep/client";
import { useState } from "react";

import { api } from "../api/api";
import { LongText } from "../ui/long-text";
import { describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";

interface Props {
  agentId: string;
  server: McpServerView;
  onRemove: () => void;
  onToggle: () => void;
}

export function ServerCard({ agentId, server, onRemove, onToggle }: Props) {
  const words = useWords();
  const agentWords = useAgentWords();
  const [tested, setTested] = useState<McpServerView | null>(null);
  const [testing, setTesting] = useState(false);
  const [failure, setFailure] = useState("");
  const { name, source, readOnly, command, args, url, disabled } = server;
  const { status, error, tools, stderr } = tested ?? server;
  const test = async () => {
    setTesting(true);
    setFailure("");
    try {
      const path = `/api/agents/${agentId}/mcp-servers/${encodeURIComponent(name)}/test`;
      setTested(await api.send<McpServerView>("POST", path));
    } catch (reason) {
      setFailure(describeProblem(words, requestProblemOf(reason)));
    }
    setTesting(false);
  };
  return (
    <li className="card server" data-status={status}>
      <div className="row">
        <strong>{name}</strong>
        <span className="badge">{agentWords.serverSource[source]}</span>
        {readOnly && <span className="badge">{agentWords.readOnly}</span>}
        <span className="status">{testing ? agentWords.serverStatus.connecting : agentWords.serverStatus[status]}</span>
      </div>
      {(command || url) && <code>{url ?? [command, ...(args ?? [])].join(" ")}</code>}
      {(error || failure) && <p className="wrong">{failure || error}</p>}
      {tools && tools.length > 0 && (
        <ul className="tools">
          {tools.map((it) => (
            <li key={it.name} title={it.description}>
              {it.name}
            </li>
          ))}
        </ul>
      )}
      {stderr && (
        <details>
          <summary>{agentWords.stderr}</summary>
          <LongText text={stderr} />
        </details>
      )}
      <div className="choices">
        <button type="button" disabled={testing || disabled} onClick={() => void test()} aria-label={agentWords.testServer(name)}>
          {agentWords.test}
        </button>
        {!readOnly && (
          <>
            <button type="button" onClick={onToggle}>
              {disabled ? agentWords.switchOn : agentWords.switchOff}
            </button>
            <button type="button" className="danger" onClick={onRemove} aria-label={agentWords.removeServer(name)}>
              {words.remove}
            </button>
          </>
        )}
      </div>
    </li>
  );
}
