import { ArrowDown } from "lucide-react";
import { Fragment, useMemo } from "react";

import { useStore } from "../state/store";
import { entriesOf, isArchived } from "../thread/entries";
import { isRunning } from "../thread/reduce";
import { type Thread } from "../thread/thread";
import { useWords } from "../words";
import { EntryView } from "./entry-view";
import { IconButton } from "./icon-button";
import { SummaryCard } from "./summary-card";
import { useScrolling } from "./use-scrolling";

interface Props {
  thread: Thread;
  /** The message that one came for. */
  seq: number | undefined;
  onDetails: (turnId: string) => void;
}

export function MessageList({ thread, seq, onDetails }: Props) {
  const words = useWords();
  const state = useStore(thread.state);
  const entries = useMemo(() => entriesOf(state.messages), [state.messages]);
  const wanted = seq === undefined ? undefined : entries.find((it) => it.versions.some((version) => version.seq === seq))?.key;
  const { scroller, shown, isAtEnd, onScroll, earlier, toEnd } = useScrolling(thread, entries, state, wanted);
  const running = isRunning(state);
  return (
    <div className="scroller" ref={scroller} onScroll={onScroll} tabIndex={-1}>
      <div className="messages" role="log" aria-label={words.conversation} aria-busy={running}>
        {(state.hasOlder || shown[0] !== entries[0]) && state.loading !== "all" && (
          <button type="button" className="link earlier" onClick={earlier}>
            {state.loading === "older" ? words.loading : words.earlier}
          </button>
        )}
        {state.loading === "all" && !entries.length && <p className="hint">{words.loading}</p>}
        {shown.map((entry, index) => {
          const isLast = entry === entries.at(-1) && !state.hasNewer;
          const isFirstKept = !isArchived(entry) && index > 0 && isArchived(shown[index - 1]!);
          return (
            <Fragment key={entry.key}>
              {isFirstKept && state.summary && <SummaryCard summary={state.summary} thread={thread} />}
              <EntryView
                entry={entry}
                live={isLast ? state.live : null}
                isLast={isLast}
                isWanted={entry.key === wanted}
                running={isLast && running}
                thread={thread}
                onDetails={onDetails}
              />
            </Fragment>
          );
        })}
      </div>
      {!isAtEnd && (
        <div className="to-latest">
          <IconButton icon={ArrowDown} label={words.toLatest} onClick={() => void toEnd()} />
        </div>
      )}
    </div>
  );
}
