import { type Message } from "@threadkeep/client";
import { CircleAlert, CircleStop, Unplug } from "lucide-react";

import { ProblemText } from "../../ui/problem-bar";
import { useWords } from "../../words";

interface Props {
  message: Message;
  hasText: boolean;
  isLast: boolean;
  onRegenerate: () => void;
  onContinue: (text: string) => void;
}

/** How an incomplete reply ended, and what the user can do about it. */
export function ReplyEnding({ message: { status, error }, hasText, isLast, onRegenerate, onContinue }: Props) {
  const words = useWords();
  const isStopped = status === "CANCELLED";
  if (!isStopped && !error) return null;
  const isInterrupted = error?.code === "INTERRUPTED";
  const kind = isStopped ? "stopped" : isInterrupted ? "interrupted" : "failed";
  const Icon = isStopped ? CircleStop : isInterrupted ? Unplug : CircleAlert;
  return (
    <div className="ending" data-kind={kind} role={isStopped ? "note" : "alert"}>
      <Icon aria-hidden />
      <p>
        {isStopped || !error ? (
          words.stopped
        ) : (
          <>
            {!isInterrupted && <strong>{words.failed}</strong>} <ProblemText problem={error} />
            {!isInterrupted && error.retryable && ` ${words.tryLater}`}
          </>
        )}
      </p>
      {isLast && (
        <div className="choices">
          {hasText && (isStopped || isInterrupted) && (
            <button type="button" onClick={() => onContinue(words.continueText)}>
              {words.continue}
            </button>
          )}
          <button type="button" onClick={onRegenerate}>
            {words.retry}
          </button>
        </div>
      )}
    </div>
  );
}
