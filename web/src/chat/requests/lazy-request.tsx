import { useState } from "react";

import { useChunk } from "../../hooks/use-chunk";
import { type Segment } from "../../turn/segments";
import { useWords } from "../../words";
import { type Decide } from "./use-decision";

export const loadRequests = () => import("./request-chunk");

interface Props {
  segment: Extract<Segment, { kind: "approval" | "client_request" | "question" }>;
  /** Whether its turn runs or waits: only then can the user decide. */
  running: boolean;
  onDecide: Decide;
}

/** A request for approval or a question; the code that shows it is loaded with the first one. */
export function LazyRequest({ segment, running, onDecide }: Props) {
  const words = useWords();
  const [hasFailed, setFailed] = useState(false);
  const requests = useChunk(loadRequests, true, () => {
    setFailed(true);
    return true;
  });
  if (hasFailed)
    return (
      <div className="card question" role="alert">
        <p>{words.partFailed}</p>
        <div className="choices">
          <button type="button" onClick={() => location.reload()}>
            {words.reload}
          </button>
        </div>
      </div>
    );
  if (!requests) return null;
  if (segment.kind === "approval") return <requests.CallApproval call={segment.call} running={running} onDecide={onDecide} />;
  if (segment.kind === "client_request") return <requests.ClientRequest call={segment.call} running={running} onDecide={onDecide} />;
  const { question } = segment;
  return <requests.QuestionCard question={question} isOpen={running && question.answer === undefined} onDecide={onDecide} />;
}
