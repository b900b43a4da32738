import { PATH_CHANGED, requestProblemOf, type Problem } from "@threadkeep/client";
import { X } from "lucide-react";

import { toast } from "../state/toasts";
import { useWords, type Words } from "../words";
import { IconButton } from "./icon-button";

export function describeProblem(words: Words, { code, message }: Problem): string {
  switch (code) {
    case "UNREACHABLE":
    case "SERVER_UNREACHABLE":
      return words.serverUnreachable;
    case "TURN_IN_PROGRESS":
      return words.turnInProgress;
    case PATH_CHANGED:
      return words.pathChanged;
    case "AGENT_NOT_FOUND":
      return words.agentGone;
    case "CONVERSATION_NOT_FOUND":
      return words.notFound;
    case "FILE_NOT_FOUND":
      return words.fileExpired;
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

/** Shows an error of an action other than sending a message. */
export function toastProblem(words: Words, error: unknown): void {
  toast(describeProblem(words, requestProblemOf(error)));
}

interface Props {
  problem: Problem;
  onDismiss: () => void;
  /** Shows the conversation's current path. */
  onShowPath?: () => void;
}

export function ProblemBar({ problem, onDismiss, onShowPath }: Props) {
  const words = useWords();
  const isMoved = problem.code === PATH_CHANGED;
  return (
    <div className={isMoved ? "problem moved" : "problem"} role="alert">
      <span>{describeProblem(words, problem)}</span>
      {isMoved && onShowPath && (
        <button type="button" onClick={onShowPath}>
          {words.showPath}
        </button>
      )}
      <IconButton icon={X} label={words.dismiss} onClick={onDismiss} />
    </div>
  );
}
