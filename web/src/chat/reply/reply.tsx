import { citationsOf, contentOf, hitsOf, isBlank, waitingCalls, waitsForUser, type FeedbackBody, type LiveReply, type Message, type Part } from "@threadkeep/client";
import { History } from "lucide-react";
import { Fragment, useMemo, useRef, useState, type ReactNode } from "react";

import { isLive, liveActivity, shownSegments } from "../../turn/activity";
import { segmentKey, type Segment } from "../../turn/segments";
import { CopyButton } from "../../ui/copy-button";
import { useChunk } from "../../ui/use-chunk";
import { useWords } from "../../words";
import { MessageTime } from "../message-time";
import type { Decide } from "../requests/use-decision";
import { LazyCitations } from "./lazy-citations";
import { RegenerateButton } from "./regenerate-button";
import { isIncomplete, ReplyEnding } from "./reply-ending";
import { ReplyPart } from "./reply-part";
import { Sources } from "./sources";

interface Props {
  /** Whose documents it may cite. */
  agentId?: string;
  message: Message;
  live: LiveReply | null;
  isLast: boolean;
  running: boolean;
  /** Whether the path can't be changed now. */
  busy: boolean;
  onRegenerate: (model?: string) => void;
  onContinue: (text: string) => void;
  onDecide: Decide;
  onFork?: () => void;
  onDetails: (turnId: string) => void;
  onRate: (body: FeedbackBody) => Promise<void>;
  /** The choice of versions. */
  children?: ReactNode;
}

const loadJudging = () => import("./judging");

export function Reply({ agentId, message, live, isLast, running, busy, children, ...actions }: Props) {
  const { onRegenerate, onContinue, onDecide, onFork, onDetails, onRate } = actions;
  const words = useWords();
  const article = useRef<HTMLElement>(null);
  /** The number of the source that the user opened. */
  const [source, setSource] = useState<number | null>(null);
  const [judged, setJudged] = useState<"rating" | "trying" | null>(null);
  const judging = useChunk(loadJudging, !running);
  const { parts } = message;
  const segments = useMemo(() => shownSegments(parts, running), [parts, running]);
  const liveAt = running ? liveActivity(segments) : -1;
  const citations = useMemo(() => citationsOf(parts), [parts]);
  const hits = useMemo(() => hitsOf(parts).length, [parts]);
  const waiting = useMemo(() => waitingCalls(parts), [parts]);
  const isAsking = running && waitsForUser(parts);
  const hasText = segments.some((it) => it.kind === "text");
  /** Once: an incomplete reply offers it where it says how it ended. */
  const regenerate = (text?: string) => (
    <RegenerateButton agentId={agentId} model={message.model} busy={busy} text={text} onRegenerate={onRegenerate} />
  );
  return (
    <article ref={article} className="reply" aria-label={words.replied}>
      {segments.map((segment, index) => (
        <Fragment key={segmentKey(segment)}>
          {isContinued(live, segments, index) && <Continued />}
          <div className="part" data-kind={segment.kind}>
            <ReplyPart
              agentId={agentId}
              segment={segment}
              growing={running && live !== null && segment.to === live.growingAt}
              live={running && isLive(segments, index)}
              running={running}
              waiting={waiting}
              progress={live?.progress}
              resumedAt={live?.resumedAt}
              sources={hits}
              onSource={setSource}
              onDecide={onDecide}
            />
          </div>
        </Fragment>
      ))}
      {isContinued(live, segments, segments.length) && <Continued />}
      {running && !isAsking && liveAt < 0 && isIdle(parts) && (
        <p className="waiting">
          <span className="dots" aria-hidden>
            <i />
            <i />
            <i />
          </span>
          <span className="unseen">{words.thinking}</span>
        </p>
      )}
      {citations.length > 0 && !running && <Sources citations={citations} parts={parts} onOpen={setSource} />}
      {citations.length > 0 && (
        <LazyCitations agentId={agentId} reply={article} parts={parts} opened={source} onClose={() => setSource(null)} />
      )}
      {!running && (
        <ReplyEnding message={message} hasText={hasText} onContinue={isLast ? onContinue : undefined}>
          {isLast && regenerate(words.retry)}
        </ReplyEnding>
      )}
      {!running && (
        <div className="actions">
          {children}
          {hasText && <CopyButton text={contentOf(parts)} shown={article} />}
          {!(isLast && isIncomplete(message)) && regenerate()}
          {judging && (
            <judging.ReplyButtons agentId={agentId} message={message} onOpen={setJudged} onRate={onRate} onFork={onFork} onDetails={onDetails} />
          )}
          <MessageTime at={message.completedAt ?? message.createdAt} />
        </div>
      )}
      {!running && judging && (
        <judging.JudgingPanels
          agentId={agentId}
          message={message}
          open={judged}
          onOpen={setJudged}
          onRate={onRate}
          onRegenerate={busy ? undefined : onRegenerate}
        />
      )}
    </article>
  );
}

function Continued() {
  const words = useWords();
  return (
    <p className="ending" data-kind="continued">
      <History aria-hidden /> {words.continued}
    </p>
  );
}

/** Whether the turn was continued before a segment, or within the one above it; what is superseded says so itself. */
function isContinued(live: LiveReply | null, segments: readonly Segment[], index: number): boolean {
  if (!live || segments[index - 1]?.kind === "superseded") return false;
  return live.resumedAt.some((at) => firstFrom(segments, at) === index);
}

/** The first segment that begins there or below; their number if none does. */
function firstFrom(segments: readonly Segment[], at: number): number {
  const found = segments.findIndex((it) => it.from >= at);
  return found < 0 ? segments.length : found;
}

/** Whether nothing shows that the reply is in progress: no text or thought is being written, and no tool is running. */
function isIdle(parts: readonly Part[]): boolean {
  const last = parts.at(-1);
  if (last?.superseded) return true;
  if (last?.type === "text" || last?.type === "thought") return isBlank(last.text);
  return !parts.some((part) => part.type === "tool_call" && part.status === "running");
}
