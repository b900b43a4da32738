import { X } from "lucide-react";

import { type Problem } from "../thread/reduce";
import { useWords, type Words } from "../words";
import { IconButton } from "./icon-button";

export function toldProblem(words: Words, { code, message }: Problem): string {
  switch (code) {
    case "UNREACHABLE":
      return words.sendFailed;
    case "TURN_IN_PROGRESS":
      return words.turnInProgress;
    case "AGENT_NOT_FOUND":
      return words.agentGone;
    case "CONVERSATION_NOT_FOUND":
      return words.notFound;
    case "GATEWAY_NOT_CONFIGURED":
      return words.notConfigured;
    case "INTERRUPTED":
      return words.interrupted;
    case "GENERATION_TIMEOUT":
      return words.timedOut;
    default:
      return message || words.somethingWrong;
  }
}

export function ProblemBar({ problem, onDismiss }: { problem: Problem; onDismiss: () => void }) {
  const words = useWords();
  return (
    <div className="problem" role="alert">
      <span>{toldProblem(words, problem)}</span>
      <IconButton icon={X} label={words.dismiss} onClick={onDismiss} />
    </div>
  );
}
