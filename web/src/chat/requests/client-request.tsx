import { type ToolCallPartView } from "@threadkeep/client";
import { MonitorSmartphone } from "lucide-react";

import { escapeHidden } from "../../turn/hidden-characters";
import { WithCode, withoutCode } from "../../ui/with-code";
import { useRequestWords } from "../../words/requests";
import { ArgumentsList } from "./arguments-list";
import { DecisionProblem } from "./request-outcome";
import { useDecision, type Decide } from "./use-decision";

interface Props {
  /** A call that waits for another client to run it. */
  call: ToolCallPartView;
  /** Whether its turn runs or waits: only then can the user deny it. */
  running: boolean;
  onDecide: Decide;
}

/** A call that only the client that brought the tool can run; here, the user can deny it. */
export function ClientRequest({ call, running, onDecide }: Props) {
  const requestWords = useRequestWords();
  const request = call.clientRequest!;
  const { open, sending, unsent, problem, decide } = useDecision(request.requestId, running, onDecide);
  if (!running) return null;
  const text = escapeHidden(requestWords.waitsForClient(call.toolName));
  return (
    <div className="card approval open" role="group" aria-label={withoutCode(text)} aria-busy={sending} {...open}>
      <p className="asked">
        <MonitorSmartphone aria-hidden />
        <span>
          <WithCode text={text} />
        </span>
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
