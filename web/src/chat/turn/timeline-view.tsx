import { type CSSProperties } from "react";

import { stepAt } from "../../turn/replay";
import { type Span, type Timeline } from "../../turn/timeline";
import { useWords, type Words } from "../../words";
import { capitalized, duration } from "../../words/format";
import { useTurnWords, type TurnWords } from "../../words/turn";

interface Props {
  timeline: Timeline;
  /** The moment that is shown, in milliseconds from the turn's start. */
  time?: number;
  /** Goes to a moment. */
  onSeek?: (time: number) => void;
}

/** Bars on a line of time, with the moment that is shown. */
export function TimelineView({ timeline, time, onSeek }: Props) {
  const words = useWords();
  const turnWords = useTurnWords();
  const whole = Math.max(timeline.duration, 1);
  const current = time === undefined ? -1 : stepAt(timeline, time);
  const at = time === undefined ? undefined : ({ "--at": Math.min(1, time / whole) } as CSSProperties);
  return (
    <ol className="timeline" style={at} data-played={time === undefined ? undefined : ""}>
      {timeline.spans.map((span, index) => {
        const title = titleOf(words, turnWords, span);
        return (
          <li
            key={index}
            data-kind={span.kind}
            data-ok={span.ok}
            data-unknown={span.isUnknown || undefined}
            style={span.depth ? ({ "--depth": span.depth } as CSSProperties) : undefined}
            data-ahead={(time !== undefined && span.from > time) || undefined}
            aria-current={index === current ? "step" : undefined}
          >
            {onSeek ? (
              <button type="button" className="title" title={turnWords.goToStep(title)} onClick={() => onSeek(span.from)}>
                <Title span={span} title={title} />
              </button>
            ) : (
              <span className="title">
                <Title span={span} title={title} />
              </span>
            )}
            <small>{duration(span.to - span.from)}</small>
            <span className="track" aria-hidden>
              <i
                style={{
                  insetInlineStart: `min(${(span.from / whole) * 100}%, 100% - 3px)`,
                  width: `max(3px, ${((span.to - span.from) / whole) * 100}%)`,
                }}
              />
            </span>
          </li>
        );
      })}
    </ol>
  );
}

/** A tool's name is code; what its call was about is not. */
function Title({ span: { kind, title: name, preview, isCode }, title }: { span: Span; title: string }) {
  if (kind !== "tool" && !isCode) return title;
  return (
    <>
      <code>{name}</code>
      {preview && title.slice(name.length)}
    </>
  );
}

export function titleOf(words: Words, turnWords: TurnWords, { kind, title, preview, superseded }: Span): string {
  if (kind === "waiting") return turnWords.waitedForYou;
  if (kind === "model") {
    const name = turnWords.modelCall(Number(title));
    return superseded ? turnWords.supersededCall(name) : name;
  }
  if (kind === "resumed") return turnWords.resumed;
  if (kind === "retrieval") return capitalized(words.searchedFor(title));
  return preview ? words.withValues(title, preview) : title;
}
