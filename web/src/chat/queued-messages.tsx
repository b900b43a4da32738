import { ApiError, isLocalId, localId, requestProblemOf, type OutboxItem, type PendingMessage, type Thread } from "@threadkeep/client";
import { ArrowUp, Clock, CornerDownRight, Pause, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";

import { useEscape } from "../hooks/use-escape";
import { IconButton } from "../ui/icon-button";
import { describeProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords, type Words } from "../words";
import { MessageFiles } from "./files/message-files";
import { UnsentStatus } from "./unsent-status";

interface Props {
  thread: Thread;
  queued: readonly PendingMessage[];
  /** Those that the server doesn't have. */
  unsent?: readonly OutboxItem[];
}

/** What was sent while a turn ran, and no turn has taken yet. */
export function QueuedMessages({ thread, queued, unsent = [] }: Props) {
  const words = useWords();
  if (!queued.length) return null;
  return (
    <section className="queue" aria-label={words.queue}>
      {queued.map((message) => (
        <Queued
          key={message.messageId}
          thread={thread}
          message={message}
          unsent={unsent.find(({ entry }) => localId(entry.id) === message.messageId)}
        />
      ))}
    </section>
  );
}

function Queued({ thread, message, unsent }: { thread: Thread; message: PendingMessage; unsent?: OutboxItem }) {
  const words = useWords();
  const { messageId, content, files, held, steers } = message;
  const [edited, setEdited] = useState<string | null>(null);
  /** Between a click and the server's response: a second click would be refused. */
  const [isAsking, setAsking] = useState(false);
  const change = async (work: () => Promise<void>) => {
    if (isAsking) return false;
    setAsking(true);
    try {
      await work();
      return true;
    } catch (error) {
      toast(describeError(words, error));
      return false;
    } finally {
      setAsking(false);
    }
  };
  const act = (work: () => Promise<void>) => {
    document.getElementById("message")?.focus();
    void change(work);
  };
  const save = async () => {
    if (edited === null || !(edited.trim() || files.length)) return leave();
    // What was typed stays until the server has it.
    if (await change(() => thread.queue.edit(messageId, edited.trim()))) leave();
  };
  const leave = () => {
    setEdited(null);
    document.getElementById("message")?.focus();
  };
  useEscape(edited !== null, leave);
  const Icon = steers ? CornerDownRight : held ? Pause : Clock;
  return (
    <article className="user-message queued" aria-label={words.queuedMessage}>
      <MessageFiles files={files} />
      {edited === null ? (
        content && (
          <div className="bubble" dir="auto">
            {content}
          </div>
        )
      ) : (
        <form
          className="bubble"
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <textarea
            autoFocus
            aria-label={words.queuedMessage}
            dir="auto"
            rows={2}
            value={edited}
            onChange={(event) => setEdited(event.target.value)}
            onKeyDown={(event) => {
              if (event.nativeEvent.isComposing) return;
              if (event.key !== "Enter" || event.shiftKey) return;
              event.preventDefault();
              void save();
            }}
          />
          <div className="choices">
            <button type="submit" className="primary" disabled={!edited.trim() && !files.length}>
              {words.save}
            </button>
            <button type="button" className="quiet" onClick={leave}>
              {words.cancel}
            </button>
          </div>
        </form>
      )}
      <div className="actions">
        {unsent ? (
          <UnsentStatus item={unsent} />
        ) : (
          <small className="state">
            <Icon aria-hidden /> {steers ? words.steering : held ? words.held : words.queued}
          </small>
        )}
        {!isLocalId(messageId) && edited === null && (
          <>
            {held && <IconButton icon={ArrowUp} label={words.sendNow} onClick={() => act(() => thread.queue.sendHeld(messageId))} />}
            <IconButton icon={Pencil} label={words.editQueued} onClick={() => setEdited(content)} />
            <IconButton icon={Trash2} label={words.removeQueued} onClick={() => act(() => thread.queue.remove(messageId))} />
          </>
        )}
      </div>
    </article>
  );
}

function describeError(words: Words, error: unknown): string {
  const isSent = error instanceof ApiError && error.code === "MESSAGE_NOT_FOUND";
  return isSent ? words.alreadySent : describeProblem(words, requestProblemOf(error));
}
