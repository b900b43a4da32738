import { requestProblemOf, type AgentToolView, type McpServerView } from "@threadkeep/client";
import { useEffect, useRef, useState } from "react";

import { api } from "../api/api";
import { describeProblem } from "../ui/problem-bar";
import { SwitchRow } from "../ui/switch-row";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";
import { usePermissionWords } from "../words/permissions";
import { AccessChoice } from "./access-choice";
import { PermissionRow } from "./permission-row";
import { choiceFor, serverRule, withAccess, type Rules } from "./permissions";
import { ToolPermission } from "./tool-permission";

interface Props {
  agentId: string;
  server: McpServerView;
  tools: readonly AgentToolView[];
  rules: Rules;
  isTrusted: boolean;
  onTrust: (isTrusted: boolean) => void;
  onRules: (rules: Rules) => void;
  /** Its tools are known now. */
  onConnected: () => void;
}

/** A server's tools, with a rule for those that have none of their own. */
export function ServerPermissions({ agentId, server, tools, rules, isTrusted, onTrust, onRules, onConnected }: Props) {
  const agentWords = useAgentWords();
  const permissionWords = usePermissionWords();
  const { isConnecting, failure, connect } = useConnection(agentId, server, tools.length > 0, onConnected);
  const all = serverRule(server.name);
  return (
    <section className="card permission-card" aria-label={server.name}>
      <PermissionRow title={<strong>{server.name}</strong>} hint={permissionWords.serverHint}>
        <AccessChoice
          label={permissionWords.serverAll(server.name)}
          choice={choiceFor(rules, all)}
          onChoose={(access) => onRules(withAccess(rules, all, access))}
        />
      </PermissionRow>
      <SwitchRow title={permissionWords.trust} hint={permissionWords.trustHint} isOn={isTrusted} onChange={onTrust} />
      <ul>
        {tools.map((tool) => (
          <ToolPermission key={tool.name} tool={tool} rules={rules} isTrusted={isTrusted} onRules={onRules} />
        ))}
      </ul>
      {!tools.length && (
        <p className="hint state" role="status">
          {server.disabled ? agentWords.serverStatus.disabled : isConnecting ? agentWords.serverStatus.connecting : failure || permissionWords.noTools}{" "}
          {!server.disabled && !isConnecting && (
            <button type="button" className="link" onClick={() => void connect()}>
              {permissionWords.connectAgain}
            </button>
          )}
        </p>
      )}
    </section>
  );
}

/** Connects a server whose tools are not known yet: nobody can decide about what isn't listed. */
function useConnection(agentId: string, { name, disabled }: McpServerView, isKnown: boolean, onConnected: () => void) {
  const words = useWords();
  const [isConnecting, setConnecting] = useState(!isKnown && !disabled);
  const [failure, setFailure] = useState("");
  const connect = async () => {
    setConnecting(true);
    setFailure("");
    try {
      const tested = await api.send<McpServerView>("POST", `/api/agents/${agentId}/mcp-servers/${encodeURIComponent(name)}/test`);
      if (tested.tools?.length) onConnected();
      else setFailure(tested.error ?? "");
    } catch (error) {
      setFailure(describeProblem(words, requestProblemOf(error)));
    }
    setConnecting(false);
  };
  const begun = useRef(false);
  useEffect(() => {
    if (isKnown || disabled || begun.current) return;
    begun.current = true;
    void connect();
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once, when it is first shown
  }, []);
  return { isConnecting, failure, connect };
}
