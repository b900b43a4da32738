import { requestProblemOf, type McpServerView } from "@threadkeep/client";
import { useState } from "react";

import { api } from "../api/api";
import { LongText } from "../ui/long-text";
import { describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";

interface Props {
  agentId: string;
  server: McpServerView;
  onRemove: () => void;
  onToggle: () => void;
}

export function ServerCard({ agentId, server, onRemove, onToggle }: Props) {
  const words = useWords();
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
        <span className="badge">{words.serverSource[source]}</span>
        {readOnly && <span className="badge">{words.readOnly}</span>}
        <span className="status">{testing ? words.serverStatus.connecting : words.serverStatus[status]}</span>
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
          <summary>{words.stderr}</summary>
          <LongText text={stderr} />
        </details>
      )}
      <div className="choices">
        <button type="button" disabled={testing || disabled} onClick={() => void test()} aria-label={words.testServer(name)}>
          {words.test}
        </button>
        {!readOnly && (
          <>
            <button type="button" onClick={onToggle}>
              {disabled ? words.switchOn : words.switchOff}
            </button>
            <button type="button" className="danger" onClick={onRemove} aria-label={words.removeServer(name)}>
              {words.remove}
            </button>
          </>
        )}
      </div>
    </li>
  );
}
