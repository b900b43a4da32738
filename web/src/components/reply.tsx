import { GitFork, Hourglass, Info, RefreshCw } from "lucide-react";
import { Fragment, useCallback, useId, useMemo, type ReactNode } from "react";

import { type LiveReply } from "../turn/fold";
import { citationsOf, contentOf, isBlank, type Message, type Part } from "../turn/parts";
import { waitingCalls, waitsForUser } from "../turn/requests";
import { segmentsOf, type Segment } from "../turn/segments";
import { useWords } from "../words";
import { CopyButton } from "./copy-button";
import { IconButton } from "./icon-button";
import { toldProblem } from "./problem-bar";
import { ReplyPart } from "./reply-part";
import { Sources } from "./sources";
import { type Answer } from "./use-answer";

interface Props {
  message: Message;
  live: LiveReply | null;
  isLast: boolean;
  running: boolean;
  /** Whether the path cannot be changed now. */
  busy: boolean;
  onRegenerate: () => void;
  onContinue: (text: string) => void;
  onAnswer: Answer;
  onFork?: () => void;
  onDetails: (turnId: string) => void;
  /** The choice of versions. */
  children?: ReactNode;
}

export function Reply({ message, live, isLast, running, busy, children, ...actions }: Props) {
  const { onRegenerate, onContinue, onAnswer, onFork, onDetails } = actions;
  const words = useWords();
  const place = useId();
  const { parts, turnId, error, status } = message;
  const segments = useMemo(() => segmentsOf(parts), [parts]);
  const citations = useMemo(() => citationsOf(parts), [parts]);
  const waiting = useMemo(() => waitingCalls(parts), [parts]);
  const isAsking = running && waitsForUser(parts);
  const hasText = segments.some((it) => it.kind === "text");
  const onSource = useCallback(
    (index: number) => document.getElementById(`${place}-source-${index}`)?.focus(),
    [place],
  );
  return (
    <article className="reply" aria-label={words.replied}>
      {segments.map((segment, index) => (
        <Fragment key={segment.from}>
          {isContinued(live, segments, index) && <p className="ending">{words.continued}</p>}
          <div className="part" data-kind={segment.kind}>
            <ReplyPart
              segment={segment}
              growing={running && live !== null && live.isGrowing && segment.to === parts.length - 1}
              running={running}
              waiting={waiting}
              progress={live?.progress}
              sources={citations.at(-1)?.index ?? 0}
              onSource={onSource}
              onAnswer={onAnswer}
            />
          </div>
        </Fragment>
      ))}
      {isContinued(live, segments, segments.length) && <p className="ending">{words.continued}</p>}
      {isAsking && (
        <p className="asking">
          <Hourglass aria-hidden /> {words.waitingForYou}
        </p>
      )}
      {running && !isAsking && isIdle(parts) && (
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

/** Whether the turn was continued between a segment and the one before; what is superseded says so itself. */
function isContinued(live: LiveReply | null, segments: readonly Segment[], index: number): boolean {
  const before = segments[index - 1];
  if (!live || before?.kind === "superseded") return false;
  const from = before ? before.to + 1 : 0;
  const to = segments[index]?.from ?? Infinity;
  return live.resumedAt.some((at) => at >= from && at <= to);
}

/** Whether nothing shows that the reply goes on: no text or thought is being written, and no tool is at work. */
function isIdle(parts: readonly Part[]): boolean {
  const last = parts.at(-1);
  if (last?.superseded) return true;
  if (last?.type === "text" || last?.type === "thought") return isBlank(last.text);
  return !parts.some((part) => part.type === "tool_call" && part.status === "running");
}
