import { type Span, type Timeline } from "../turn/timeline";
import { useWords, type Words } from "../words";
import { capitalized, duration } from "../words/format";

/** Bars on a line of time. */
export function TimelineView({ timeline }: { timeline: Timeline }) {
  const words = useWords();
  const whole = Math.max(timeline.duration, 1);
  if (!timeline.spans.length) return <p className="hint">{words.gone}</p>;
  return (
    <ol className="timeline">
      {timeline.spans.map((span, index) => (
        <li key={index} data-kind={span.kind} data-ok={span.ok}>
          <span className="title">{titleOf(words, span)}</span>
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
      ))}
    </ol>
  );
}

function titleOf(words: Words, { kind, title, superseded }: Span): string {
  if (kind === "waiting") return words.waitedForYou;
  if (kind === "model") {
    const name = words.modelCall(Number(title));
    return superseded ? words.supersededCall(name) : name;
  }
  return kind === "retrieval" ? capitalized(words.searchedFor(title)) : title;
}
