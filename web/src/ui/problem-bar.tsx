import { PATH_CHANGED, requestProblemOf, type Problem } from "@threadkeep/client";
import { X } from "lucide-react";

import { useWords, type Words } from "../words";
import { dateTime } from "../words/format";
import { IconButton } from "./icon-button";
import { LogReference } from "./log-reference";
import { toast } from "./toasts";

const OVER_BUDGET = "BUDGET_EXCEEDED";

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
    case OVER_BUDGET:
      return words.overBudget(resetIn(message, words.locale));
    case "INTERRUPTED":
      return words.interrupted;
    case "GENERATION_TIMEOUT":
      return words.timedOut;
    default:
      return message || words.somethingWrong;
  }
}

/** When the budget resets. A failed reply has it in its message only. */
function resetIn(message: string, locale: string): string {
  const [time] = /\d{4}-\d\d-\d\dT[\d:.]+Z/.exec(message) ?? [];
  return time ? dateTime(time, locale) : "";
}

/** What a problem is, with a link to the budgets if they are the reason. */
export function ProblemText({ problem }: { problem: Problem }) {
  const words = useWords();
  const text = describeProblem(words, problem);
  if (problem.code !== OVER_BUDGET) return text;
  return (
    <>
      {text} <a href="#/usage">{words.usage}</a>
    </>
  );
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
      <span>
        <ProblemText problem={problem} />
        {problem.requestId && <LogReference id={problem.requestId} />}
      </span>
      {isMoved && onShowPath && (
        <button type="button" onClick={onShowPath}>
          {words.showPath}
        </button>
      )}
      <IconButton icon={X} label={words.dismiss} onClick={onDismiss} />
    </div>
  );
}
