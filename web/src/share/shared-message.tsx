import { citationsOf, contentOf, filesOf, type Message } from "@threadkeep/client";
import { CircleAlert, CircleStop, History } from "lucide-react";
import { memo, useCallback, useMemo, useRef, useState } from "react";

import { BriefingCard } from "../chat/briefing-card";
import { MessageFiles } from "../chat/files/message-files";
import { LazyCitations } from "../chat/reply/lazy-citations";
import { ReplyPart } from "../chat/reply/reply-part";
import { Sources } from "../chat/reply/sources";
import { shownSegments } from "../turn/activity";
import { segmentKey } from "../turn/segments";
import { CopyButton } from "../ui/copy-button";
import { IconButton } from "../ui/icon-button";
import { useWords } from "../words";
import { useShareWords } from "../words/shares";
import { LazySharedReplay } from "./lazy-shared-replay";

/** One message of a share. */
export const SharedMessage = memo(function SharedMessage({ message }: { message: Message }) {
  const shareWords = useShareWords();
  const [first] = message.parts;
  if (first?.type === "card") return <BriefingCard card={first} />;
  if (message.role !== "user") return <SharedReply message={message} />;
  const text = contentOf(message.parts);
  return (
    <article className="user-message" aria-label={shareWords.asked}>
      <MessageFiles files={filesOf(message.parts)} />
      {text && (
        <div className="bubble" dir="auto">
          {text}
        </div>
      )}
    </article>
  );
});

function SharedReply({ message }: { message: Message }) {
  const { parts, status } = message;
  const words = useWords();
  const shareWords = useShareWords();
  const article = useRef<HTMLElement>(null);
  /** The number of the source that the reader opened. */
  const [source, setSource] = useState<number | null>(null);
  const [isReplayed, setReplayed] = useState(false);
  const endReplay = useCallback(() => setReplayed(false), []);
  const hasSteps = parts.some(({ type }) => type === "tool_call" || type === "retrieval" || type === "thought");
  const segments = useMemo(() => shownSegments(parts, false), [parts]);
  // Private ones are empty, so that the others keep their numbers.
  const citations = useMemo(() => citationsOf(parts).filter((it) => it.title), [parts]);
  const text = contentOf(parts);
  return (
    <article ref={article} className="reply" aria-label={shareWords.answered}>
      {segments.map((segment) => (
        <div className="part" key={segmentKey(segment)} data-kind={segment.kind}>
          <ReplyPart
            segment={segment}
            growing={false}
            live={false}
            running={false}
            waiting={NONE}
            progress={undefined}
            sources={citations.at(-1)?.index ?? 0}
            onSource={setSource}
            onDecide={refuse}
          />
        </div>
      ))}
      {citations.length > 0 && (
        <>
          <Sources citations={citations} parts={parts} onOpen={setSource} />
          <LazyCitations agentId={undefined} reply={article} parts={parts} opened={source} onClose={() => setSource(null)} />
        </>
      )}
      {status !== "COMPLETED" && (
        <p className="ending" data-kind={status === "CANCELLED" ? "stopped" : "failed"}>
          {status === "CANCELLED" ? <CircleStop aria-hidden /> : <CircleAlert aria-hidden />}
          {status === "CANCELLED" ? words.stopped : shareWords.failed}
        </p>
      )}
      {(text || hasSteps) && (
        <div className="actions">
          {text && <CopyButton text={text} shown={article} />}
          {hasSteps && <IconButton icon={History} label={shareWords.replay} onClick={() => setReplayed(true)} />}
        </div>
      )}
      <LazySharedReplay message={message} isOpen={isReplayed} onClose={endReplay} />
    </article>
  );
}

const NONE: ReadonlySet<string> = new Set();

async function refuse(): Promise<boolean> {
  return false;
}
