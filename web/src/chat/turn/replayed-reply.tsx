import { waitingCalls, type LiveReply } from "@threadkeep/client";
import { Clock } from "lucide-react";
import { memo, useLayoutEffect, useMemo, useRef, type RefObject, type UIEvent } from "react";

import { isLive, shownSegments } from "../../turn/activity";
import { segmentKey, type Segment } from "../../turn/segments";
import { WithCode } from "../../ui/with-code";
import { useRequestWords, type RequestWords } from "../../words/requests";
import { useTurnWords } from "../../words/turn";
import { ReplyPart } from "../reply/reply-part";

interface Props {
  reply: LiveReply;
  /** Whether more comes. */
  isRunning: boolean;
  box?: RefObject<HTMLDivElement | null>;
}

const NEAR_PX = 24;

/** A reply at a moment of its turn, read-only. */
export const ReplayedReply = memo(function ReplayedReply({ reply, isRunning, box: place }: Props) {
  const requestWords = useRequestWords();
  const turnWords = useTurnWords();
  const own = useRef<HTMLDivElement>(null);
  const box = place ?? own;
  const { parts } = reply.message;
  const segments = useMemo(() => shownSegments(parts, isRunning), [parts, isRunning]);
  const waiting = useMemo(() => waitingCalls(parts), [parts]);
  /** Whether the user reads at its end. */
  const pinned = useRef(true);
  const hasGrown = useRef(false);
  useLayoutEffect(() => {
    // Follow a growing reply; show a complete one from its beginning.
    if (isRunning) hasGrown.current = true;
    const shown = box.current!;
    if (shown.scrollHeight <= shown.clientHeight) pinned.current = true;
    if (hasGrown.current && pinned.current) shown.scrollTo({ top: shown.scrollHeight });
  }, [box, reply, isRunning]);
  const onScroll = ({ currentTarget: it }: UIEvent<HTMLElement>) => {
    pinned.current = it.scrollHeight - it.scrollTop - it.clientHeight < NEAR_PX;
  };
  return (
    <div ref={box} className="reply replayed" role="group" aria-label={turnWords.replyThen} tabIndex={0} onScroll={onScroll}>
      {!segments.length && <p className="about">{turnWords.nothingYet}</p>}
      {segments.map((segment, index) => (
        <div className="part" key={segmentKey(segment)} data-kind={segment.kind}>
          {isRunning && isUndecided(segment) ? (
            <p className="outcome" data-action="none">
              <Clock aria-hidden />
              <span>
                <WithCode text={askedIn(requestWords, segment)} />
              </span>
            </p>
          ) : (
            <ReplyPart
              segment={segment}
              growing={isRunning && segment.to === reply.growingAt}
              live={isRunning && isLive(segments, index)}
              running={false}
              waiting={waiting}
              progress={reply.progress}
              resumedAt={reply.resumedAt}
              sources={0}
              onSource={ignored}
              onDecide={ignored}
              isPassage
            />
          )}
        </div>
      ))}
    </div>
  );
});

/** Whether it asks something that was undecided at that moment; the user can't decide here. */
function isUndecided(segment: Segment): boolean {
  if (segment.kind === "question") return segment.question.answer === undefined;
  return segment.kind === "client_request" || segment.kind === "approval";
}

function askedIn(requestWords: RequestWords, segment: Segment): string {
  if (segment.kind === "question") return segment.question.message;
  if (segment.kind === "client_request") return segment.call.clientRequest!.message;
  return segment.kind === "approval" ? requestWords.allowCall("", segment.call.toolName, segment.call.server) : "";
}

async function ignored(): Promise<boolean> {
  return false;
}
