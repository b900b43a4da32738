import { type ToolCallPartView } from "@threadkeep/client";
import { MonitorSmartphone } from "lucide-react";

import { escapeHidden } from "../../turn/hidden-characters";
import { useRequestWords } from "../../words/requests";
import { ArgumentsList } from "./arguments-list";
import { DecisionProblem, RequestOutcome } from "./request-outcome";
import { useDecision, type Decide } from "./use-decision";

interface Props {
  /** A call that another client runs. */
  call: ToolCallPartView;
  /** Whether its turn runs or waits: only then can the user deny it. */
  running: boolean;
  onDecide: Decide;
}

/** A call that only the client that brought the tool can run; here, the user can deny it. */
export function ClientRequest({ call, running, onDecide }: Props) {
  const requestWords = useRequestWords();
  const request = call.clientRequest!;
  const isOpen = running && call.status === "running" && request.action === undefined;
  const { open, outcome, sending, unsent, problem, decide } = useDecision(request.requestId, isOpen, onDecide);
  if (!isOpen)
    return (
      <div className="approval">
        <RequestOutcome place={outcome} action={request.action} at={request.at} about={call.toolName} />
      </div>
    );
  const label = escapeHidden(requestWords.waitsForClient(call.toolName));
  return (
    <div className="card approval open" role="group" aria-label={label} aria-busy={sending} {...open}>
      <p className="asked">
        <MonitorSmartphone aria-hidden />
        <span>{label}</span>
      </p>
      <p className="detail">{requestWords.clientHint}</p>
      <ArgumentsList values={call.approval?.arguments ?? call.arguments} />
      <div className="choices">
        <button type="button" className="danger" aria-disabled={sending} onClick={() => void decide({ action: "deny" })}>
          {requestWords.deny}
        </button>
      </div>
      <DecisionProblem problem={problem} unsent={unsent} />
    </div>
  );
}
