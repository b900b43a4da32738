import { type ApprovalScope, type CallApprovalView, type ToolCallPartView } from "@threadkeep/client";
import { Wrench } from "lucide-react";
import { useId, useState } from "react";

import { escapeHidden } from "../../turn/hidden-characters";
import { useWords } from "../../words";
import { useRequestWords, type RequestWords } from "../../words/requests";
import { ArgumentsList, isLong } from "./arguments-list";
import { DecisionProblem, RequestOutcome } from "./request-outcome";
import { useDecision, type Decide } from "./use-decision";

interface Props {
  /** A call that has an approval. */
  call: ToolCallPartView;
  /** Whether its turn runs or waits: only then can the user decide. */
  running: boolean;
  onDecide: Decide;
}

/** The request for approval of a tool call, with its arguments, and the user's choice. */
export function CallApproval({ call, running, onDecide }: Props) {
  const words = useWords();
  const requestWords = useRequestWords();
  const approval = call.approval!;
  const isOpen = running && call.status === "running" && approval.action === undefined;
  const { open, outcome, sending, unsent, problem, decide } = useDecision(approval.requestId, isOpen, onDecide);
  const [editing, setEditing] = useState(false);
  const [isExpanded, setExpanded] = useState(false);
  const hint = useId();
  if (!isOpen) {
    const { action, scope, at, arguments: edited } = approval;
    return (
      <div className="approval">
        <RequestOutcome place={outcome} action={action} scope={scope} at={at} about={call.toolName} />
        {edited && <ArgumentsList values={edited} />}
      </div>
    );
  }
  const label = escapeHidden(words.allowCall(call.toolName, call.server));
  // Nobody approves the tail of a command unseen.
  const mustExpand = !isExpanded && isLong(call.arguments);
  const choice = { "aria-disabled": sending || mustExpand, "aria-describedby": mustExpand ? hint : undefined };
  const allow = (scope: ApprovalScope) => !mustExpand && void decide({ action: "allow", scope });
  return (
    <div className="card approval open" role="group" aria-label={label} aria-busy={sending} {...open}>
      <p className="asked">
        <Wrench aria-hidden />
        <span>{label}</span>
      </p>
      {says(approval, call) && <p className="detail">{escapeHidden(approval.message)}</p>}
      {editing ? (
        <EditArguments
          initial={call.arguments}
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
            <button type="button" className="primary" {...choice} onClick={() => allow("once")}>
              {requestWords.allowOnce}
            </button>
            <button type="button" {...choice} onClick={() => allow("conversation")}>
              {requestWords.allowHere}
            </button>
            <button type="button" className="danger" aria-disabled={sending} onClick={() => void decide({ action: "deny" })}>
              {requestWords.deny}
            </button>
            <button type="button" className="quiet" aria-disabled={sending} onClick={() => !sending && setEditing(true)}>
              {words.edit}
            </button>
          </div>
        </>
      )}
      <DecisionProblem problem={problem} unsent={unsent} />
    </div>
  );
}

/** Whether the request says more than the tool's name, as when a call may already have taken effect. */
function says({ message }: CallApprovalView, { toolName, server }: ToolCallPartView): boolean {
  return message !== "" && message !== `Call ${toolName} on ${server}?`;
}

interface EditProps {
  initial: Record<string, unknown>;
  sending: boolean;
  onCancel: () => void;
  onSave: (edited: Record<string, unknown>) => void;
}

function EditArguments({ initial, sending, onCancel, onSave }: EditProps) {
  const words = useWords();
  const requestWords = useRequestWords();
  const id = useId();
  const [text, setText] = useState(() => escapeHidden(JSON.stringify(initial, null, 2)));
  const read = readArguments(requestWords, text);
  return (
    <form
      className="edit-arguments"
      onSubmit={(event) => {
        event.preventDefault();
        if (read.values && !sending) onSave(read.values);
      }}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.nativeEvent.isComposing) return;
        event.stopPropagation();
        onCancel();
      }}
    >
      <label htmlFor={id}>{requestWords.editArguments}</label>
      <textarea
        id={id}
        autoFocus
        spellCheck={false}
        rows={Math.min(12, text.split("\n").length + 1)}
        value={text}
        aria-invalid={read.fault !== null}
        aria-describedby={`${id}-fault`}
        onChange={(event) => setText(event.target.value)}
      />
      <p className="fault" id={`${id}-fault`} aria-live="polite">
        {read.fault}
      </p>
      <div className="choices">
        <button type="submit" className="primary" disabled={read.fault !== null} aria-disabled={sending}>
          {requestWords.allowEdited}
        </button>
        <button type="button" className="quiet" onClick={onCancel}>
          {words.cancel}
        </button>
      </div>
    </form>
  );
}

type Read = { values: Record<string, unknown>; fault: null } | { values: null; fault: string };

function readArguments(requestWords: RequestWords, text: string): Read {
  try {
    const values: unknown = JSON.parse(text);
    if (values === null || typeof values !== "object" || Array.isArray(values)) return { values: null, fault: requestWords.notAnObject };
    return { values: values as Record<string, unknown>, fault: null };
  } catch (error) {
    return { values: null, fault: requestWords.notJson((error as Error).message) };
  }
}
