import { type Message } from "@threadkeep/client";
import { type ReactNode } from "react";
import { CircleAlert, CircleStop, Unplug } from "lucide-react";

import { LogReference } from "../../ui/log-reference";
import { ProblemText } from "../../ui/problem-bar";
import { useWords } from "../../words";

interface Props {
  message: Message;
  hasText: boolean;
  /** Missing if another message follows. */
  onContinue?: (text: string) => void;
  /** The way to another reply, if this is the last one. */
  children: ReactNode;
}

/** Whether a reply has an ending to show. */
export function isIncomplete({ status, error }: Message): boolean {
  return status === "CANCELLED" || !!error;
}

/** How an incomplete reply ended, and what the user can do about it. */
export function ReplyEnding({ message, hasText, onContinue, children }: Props) {
  const words = useWords();
  if (!isIncomplete(message)) return null;
  const { status, error } = message;
  const isStopped = status === "CANCELLED";
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
            {message.turnId && <LogReference id={message.turnId} />}
          </>
        )}
      </p>
      {onContinue && (
        <div className="choices">
          {hasText && (isStopped || isInterrupted) && (
            <button type="button" onClick={() => onContinue(words.continueText)}>
              {words.continue}
            </button>
          )}
          {children}
        </div>
      )}
    </div>
  );
}
