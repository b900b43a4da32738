import { isBusy, isLocalId, isRunning, isWaiting, itemsIn, keyOf, type Thread } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { ArrowDown } from "lucide-react";
import { Fragment } from "react";

import { outbox } from "../state/front-end";
import { IconButton } from "../ui/icon-button";
import { useWords } from "../words";
import { QueuedMessages } from "./queued-messages";
import { SummaryCard } from "./summary-card";
import { ThreadMessage, type MessageActions } from "./thread-message";
import { useScrolling } from "./use-scrolling";

interface Props extends Omit<MessageActions, "onChoose"> {
  thread: Thread;
  /** The message that the user opened. */
  seq: number | undefined;
  /** The message being edited. */
  editedId: string | undefined;
}

export function MessageList({ thread, seq, editedId, onEdit, onFork, onDetails }: Props) {
  const words = useWords();
  const state = useStore(thread.state);
  const { messages } = state;
  const wanted = seq === undefined ? undefined : messages.find((it) => it.seq === seq);
  const { scroller, shown, isAtEnd, onScroll, earlier, toEnd, hold } = useScrolling(thread, state, wanted && keyOf(wanted));
  const items = itemsIn(useStore(outbox.items), thread.id);
  const sending = items.find(({ entry }) => entry.id === state.sendingId);
  // A message that the server doesn't have gets no reply.
  const visible = sending?.state === "waiting" ? shown.filter((it) => !isLocalId(it.id) || it.role === "user") : shown;
  const running = isRunning(state);
  const busy = isBusy(state);
  return (
    <div className="scroller" ref={scroller} onScroll={onScroll} tabIndex={-1}>
      <div className="messages" role="log" aria-label={words.conversation} aria-busy={running && !isWaiting(state)}>
        {(state.hasOlder || shown[0] !== messages[0]) && state.loading !== "all" && (
          <button type="button" className="link earlier" onClick={earlier}>
            {state.loading === "older" ? words.loading : words.earlier}
          </button>
        )}
        {state.loading === "all" && !messages.length && <p className="hint">{state.connection === "lost" ? words.notOnDevice : words.loading}</p>}
        {visible.map((message, index) => {
          const isLast = message === messages.at(-1) && !state.hasNewer;
          // The model sees archived messages only through the summary.
          const isFirstKept = !message.archived && index > 0 && shown[index - 1]!.archived;
          return (
            <Fragment key={keyOf(message)}>
              {isFirstKept && state.summary && <SummaryCard summary={state.summary} thread={thread} />}
              <ThreadMessage
                agentId={state.conversation?.agentId}
                message={message}
                live={isLast ? state.live : null}
                isLast={isLast}
                isWanted={message === wanted}
                isEdited={message.id === editedId}
                running={isLast && running}
                unsent={isLocalId(message.id) && message.role === "user" ? sending : undefined}
                busy={busy}
                thread={thread}
                onChoose={(id, it) => void hold(thread.branches.choose(id, it))}
                onEdit={onEdit}
                onFork={onFork}
                onDetails={onDetails}
              />
            </Fragment>
          );
        })}
        {!state.hasNewer && <QueuedMessages thread={thread} queued={state.queued} unsent={items} />}
      </div>
      {!isAtEnd && (
        <div className="to-latest">
          <IconButton icon={ArrowDown} label={words.toLatest} onClick={() => void toEnd()} />
        </div>
      )}
    </div>
  );
}
