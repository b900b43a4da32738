import { GitFork, Info, RefreshCw } from "lucide-react";
import { useCallback, useId, useMemo, type ReactNode } from "react";

import { type LiveReply } from "../turn/fold";
import { citationsOf, contentOf, isBlank, type Message, type Part } from "../turn/parts";
import { segmentsOf } from "../turn/segments";
import { useWords } from "../words";
import { CopyButton } from "./copy-button";
import { IconButton } from "./icon-button";
import { toldProblem } from "./problem-bar";
import { ReplyPart } from "./reply-part";
import { Sources } from "./sources";

interface Props {
  message: Message;
  live: LiveReply | null;
  isLast: boolean;
  running: boolean;
  /** Whether the path cannot be changed now. */
  busy: boolean;
  onRegenerate: () => void;
  onContinue: (text: string) => void;
  onFork?: () => void;
  onDetails: (turnId: string) => void;
  /** The choice of versions. */
  children?: ReactNode;
}

export function Reply({ message, live, isLast, running, busy, children, ...actions }: Props) {
  const { onRegenerate, onContinue, onFork, onDetails } = actions;
  const words = useWords();
  const place = useId();
  const { parts, turnId, error, status } = message;
  const segments = useMemo(() => segmentsOf(parts), [parts]);
  const citations = useMemo(() => citationsOf(parts), [parts]);
  const hasText = segments.some((it) => it.kind === "text");
  const onSource = useCallback(
    (index: number) => document.getElementById(`${place}-source-${index}`)?.focus(),
    [place],
  );
  return (
    <article className="reply" aria-label={words.replied}>
      {segments.map((segment) => (
        <div key={segment.from} className="part" data-kind={segment.kind}>
          <ReplyPart
            segment={segment}
            growing={running && live !== null && live.isGrowing && segment.to === parts.length - 1}
            progress={live?.progress}
            sources={citations.at(-1)?.index ?? 0}
            onSource={onSource}
          />
        </div>
      ))}
      {running && isWaiting(parts) && (
        <p className="waiting" role="status">
          <span className="dots" aria-hidden>
            <i />
            <i />
            <i />
          </span>
          <span className="unseen">{words.waiting}</span>
        </p>
      )}
      {citations.length > 0 && !running && <Sources citations={citations} place={place} />}
      {status === "CANCELLED" && <p className="ending">{words.stopped}</p>}
      {error && (
        <div className="failure" role="alert">
          <p>
            <strong>{words.failed}</strong> {toldProblem(words, error)}
          </p>
          {isLast && (
            <div className="choices">
              {hasText && error.code === "INTERRUPTED" && (
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
      )}
      {!running && (
        <div className="actions">
          {children}
          {hasText && <CopyButton text={contentOf(parts)} />}
          <IconButton
            icon={RefreshCw}
            label={words.regenerate}
            unavailable={busy ? words.regenerateBusy : undefined}
            onClick={onRegenerate}
          />
          {onFork && <IconButton icon={GitFork} label={words.fork} onClick={onFork} />}
          {turnId && <IconButton icon={Info} label={words.details} onClick={() => onDetails(turnId)} />}
        </div>
      )}
    </article>
  );
}

/** Whether nothing shows that the reply goes on: no text or thought is being written, and no tool is at work. */
function isWaiting(parts: readonly Part[]): boolean {
  const last = parts.at(-1);
  if (last?.type === "text" || last?.type === "thought") return isBlank(last.text);
  return !parts.some((part) => part.type === "tool_call" && part.status === "running");
}
