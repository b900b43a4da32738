import { type AnswerBody, type ApprovalAction, type OutboxItem, type Problem } from "@threadkeep/client";
import { Ban, Clock, MessageSquare, type LucideIcon } from "lucide-react";
import { type RefObject } from "react";

import { describeProblem } from "../../ui/problem-bar";
import { useWords, type Words } from "../../words";
import { capitalized } from "../../words/format";
import { useRequestWords, type RequestWords } from "../../words/requests";
import { MessageTime } from "../message-time";
import { UnsentStatus } from "../unsent-status";

interface Props {
  place: RefObject<HTMLParagraphElement | null>;
  /** Missing if the turn ended without an answer. */
  action: ApprovalAction | undefined;
  at?: string;
}

const ICONS: Partial<Record<ApprovalAction, LucideIcon>> = { answer: MessageSquare, deny: Ban };

/** What became of a question, here or in another tab; a call says it in its own line. */
export function QuestionOutcome({ place, action, at }: Props) {
  const words = useWords();
  const requestWords = useRequestWords();
  const Icon = (action && ICONS[action]) ?? Clock;
  return (
    <p ref={place} className="outcome" tabIndex={-1} data-action={action ?? "none"}>
      <Icon aria-hidden />
      <span>{capitalized(answeredAs(words, requestWords, action))}</span>
      {at && <MessageTime at={at} />}
    </p>
  );
}

function answeredAs(words: Words, requestWords: RequestWords, action: ApprovalAction | undefined): string {
  if (action === "answer") return requestWords.answered;
  if (action === "deny") return requestWords.declined;
  return action === "expire" ? words.outcomes.expire : words.outcomes.none;
}

function decidedAs(words: Words, requestWords: RequestWords, { action, scope = "once" }: AnswerBody, isQuestion: boolean): string {
  if (isQuestion || action === "answer") return answeredAs(words, requestWords, action);
  return action === "allow" ? words.outcomes[scope] : words.outcomes[action];
}

/** Why a decision wasn't accepted, or hasn't arrived. */
export function DecisionProblem({ problem, unsent, isQuestion = false }: { problem: Problem | null; unsent?: OutboxItem; isQuestion?: boolean }) {
  const words = useWords();
  const requestWords = useRequestWords();
  if (unsent?.state === "waiting" && unsent.entry.kind === "answer") {
    return <UnsentStatus item={unsent} about={requestWords.unsentAnswer(decidedAs(words, requestWords, unsent.entry.body, isQuestion))} />;
  }
  if (!problem) return null;
  const messages: Record<string, string> = {
    APPROVAL_ANSWERED: requestWords.answeredElsewhere,
    APPROVAL_EXPIRED: requestWords.requestExpired,
    APPROVAL_NOT_FOUND: requestWords.requestGone,
    TURN_NOT_FOUND: requestWords.requestGone,
    UNREACHABLE: words.serverUnreachable,
  };
  return (
    <p className="fault" role="alert">
      {messages[problem.code] ?? describeProblem(words, problem)}
    </p>
  );
}
