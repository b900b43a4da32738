import { type ApprovalAction, type ApprovalScope, type OutboxItem, type Problem } from "@threadkeep/client";
import { Ban, Check, Clock, MessageSquare, MonitorSmartphone, type LucideIcon } from "lucide-react";
import { type RefObject } from "react";

import { describeProblem } from "../../ui/problem-bar";
import { useWords } from "../../words";
import { useRequestWords, type RequestWords } from "../../words/requests";
import { MessageTime } from "../message-time";
import { UnsentStatus } from "../unsent-status";

interface Props {
  place: RefObject<HTMLParagraphElement | null>;
  /** Missing if the turn ended without a decision. */
  action: ApprovalAction | undefined;
  scope?: ApprovalScope;
  at?: string;
  /** The requested tool. */
  about?: string;
  /** Whether a question was answered, not a call allowed. */
  isQuestion?: boolean;
}

const ICONS: Record<ApprovalAction, LucideIcon> = { allow: Check, edit: Check, answer: MessageSquare, result: MonitorSmartphone, deny: Ban, expire: Clock };

/** What was chosen, here or in another tab. */
export function RequestOutcome({ place, action, scope, at, about, isQuestion = false }: Props) {
  const requestWords = useRequestWords();
  // A newer server may know further actions.
  const Icon = (action && (ICONS as Partial<typeof ICONS>)[action]) ?? Clock;
  return (
    <p ref={place} className="outcome" tabIndex={-1} data-action={action ?? "none"}>
      <Icon aria-hidden />
      <span>{outcomeOf(requestWords, action, scope, isQuestion)}</span>
      {about && <code className="name">{about}</code>}
      {at && <MessageTime at={at} />}
    </p>
  );
}

export function outcomeOf(requestWords: RequestWords, action: ApprovalAction | undefined, scope?: ApprovalScope, isQuestion = false): string {
  switch (action) {
    case "allow":
      return scope === "conversation" ? requestWords.allowedHere : requestWords.allowedOnce;
    case "edit":
      return requestWords.allowedEdited;
    case "answer":
      return requestWords.answered;
    case "result":
      return requestWords.runByClient;
    case "deny":
      return isQuestion ? requestWords.declined : requestWords.denied;
    case "expire":
      return requestWords.expired;
    default:
      return action ?? requestWords.unanswered;
  }
}

/** Why a decision wasn't accepted, or hasn't arrived. */
export function DecisionProblem({ problem, unsent, isQuestion = false }: { problem: Problem | null; unsent?: OutboxItem; isQuestion?: boolean }) {
  const words = useWords();
  const requestWords = useRequestWords();
  if (unsent?.state === "waiting" && unsent.entry.kind === "answer") {
    const { action, scope } = unsent.entry.body;
    return <UnsentStatus item={unsent} about={requestWords.unsentAnswer(outcomeOf(requestWords, action, scope, isQuestion))} />;
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
