import { type ApprovalScope, type CallApprovalView, type ToolCallPartView } from "@threadkeep/client";
import { useSelected, useStore } from "@threadkeep/react";
import { Wrench } from "lucide-react";
import { useId, useState } from "react";

import { agentName, agents } from "../../state/agents";
import { allowedToolsOf } from "../../state/allowed-tools";
import { approvals } from "../../state/front-end";
import { go, hrefOf } from "../../state/route";
import { escapeHidden } from "../../turn/hidden-characters";
import { toast } from "../../ui/toasts";
import { WithCode, withoutCode } from "../../ui/with-code";
import { useWords } from "../../words";
import { useRequestWords } from "../../words/requests";
import { ArgumentsList, isLong } from "./arguments-list";
import { EditArguments } from "./edit-arguments";
import { DecisionProblem } from "./request-outcome";
import { useDecision, type Decide } from "./use-decision";

interface Props {
  agentId: string | undefined;
  /** A call that waits for its approval. */
  call: ToolCallPartView;
  /** Whether its turn runs or waits: only then can the user decide. */
  running: boolean;
  onDecide: Decide;
}

/** The request for approval of a tool call, with its arguments, and the user's choice. How it ended is in the call's own line. */
export function CallApproval({ agentId, call, running, onDecide }: Props) {
  const words = useWords();
  const requestWords = useRequestWords();
  const approval = call.approval!;
  const { open, sending, unsent, problem, decide } = useDecision(approval.requestId, running, onDecide);
  const listed = useSelected(approvals.items, (all) => all.find((it) => it.requestId === approval.requestId));
  const all = useStore(agents);
  const [editing, setEditing] = useState(false);
  const [isExpanded, setExpanded] = useState(false);
  const hint = useId();
  if (!running) return null;
  const question = escapeHidden(requestWords.allowCall(agentName(all, agentId), call.toolName, call.server));
  // Nobody approves the tail of a command unseen.
  const mustExpand = !isExpanded && isLong(call.arguments);
  const choice = { "aria-disabled": sending || mustExpand, "aria-describedby": mustExpand ? hint : undefined };
  const allow = async (scope: ApprovalScope) => {
    if (!mustExpand && (await decide({ action: "allow", scope })) && scope === "conversation")
      toast(withoutCode(requestWords.wontAsk(call.toolName)), listed && { label: requestWords.manage, run: () => manage(listed.conversationId) });
  };
  // Only those who can change the agent see its settings.
  const agent = all.find((it) => it.id === agentId && it.settings);
  return (
    <div className="card approval open" role="group" aria-label={withoutCode(question)} aria-busy={sending} {...open}>
      <p className="asked">
        <Wrench aria-hidden />
        <span>
          <WithCode text={question} />
        </span>
      </p>
      {says(approval, call) && <p className="detail">{escapeHidden(approval.message)}</p>}
      {editing ? (
        <EditArguments
          values={call.arguments}
          schema={listed?.schema}
          sending={sending}
          onCancel={() => {
            setEditing(false);
            open.ref.current?.focus();
          }}
          onSave={(edited) => void decide({ action: "edit", arguments: edited })}
        />
      ) : (
        <>
          <ArgumentsList
            values={call.arguments}
            isExpanded={isExpanded}
            onExpand={() => {
              setExpanded(true);
              open.ref.current?.focus();
            }}
          />
          {mustExpand && (
            <p className="detail" id={hint}>
              {requestWords.expandFirst}
            </p>
          )}
          <div className="choices">
            <button type="button" className="primary" {...choice} onClick={() => void allow("once")}>
              {requestWords.allowOnce}
            </button>
            <button type="button" {...choice} onClick={() => void allow("conversation")}>
              {requestWords.allowHere}
            </button>
            <button type="button" className="danger" aria-disabled={sending} onClick={() => void decide({ action: "deny" })}>
              {requestWords.deny}
            </button>
            <button type="button" className="quiet" {...choice} onClick={() => !sending && !mustExpand && setEditing(true)}>
              {words.edit}
            </button>
            {agent && (
              <a className="permissions-link" href={hrefOf({ name: "agent", id: agent.id, tab: "permissions" })}>
                {requestWords.permissions}
              </a>
            )}
          </div>
        </>
      )}
      <DecisionProblem problem={problem} unsent={unsent} />
    </div>
  );
}

/** Shows what is allowed in a conversation, which may not be the open one. */
function manage(conversationId: string): void {
  go({ name: "conversation", id: conversationId });
  allowedToolsOf.set(conversationId);
}

/** Whether the request says more than the tool's name, as when a call may already have taken effect. */
function says({ message }: CallApprovalView, { toolName, server }: ToolCallPartView): boolean {
  return message !== "" && message !== `Call ${toolName} on ${server}?`;
}
