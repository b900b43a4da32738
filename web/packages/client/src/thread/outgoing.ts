/** Shows what the user has sent where it will be once the server has it, and takes it back if the server refuses. */

import { ApiError, problemOf, type Problem } from "../errors.ts";
import { type OutboxEvent } from "../outbox/delivery.ts";
import { itemsIn } from "../outbox/entries.ts";
import { isQueued, shownFile, type OutgoingMessage } from "../outbox/entry.ts";
import { type Outbox } from "../outbox/outbox.ts";
import { type StartedTurnView } from "../schema.ts";
import { filePart } from "../turn/files.ts";
import { type ThreadContext } from "./context.ts";
import { localId } from "./state.ts";

export interface OutgoingOptions {
  outbox: Outbox;
  /** The server no longer has a file that the user wanted to send. */
  onFileMissing?: (fileId: string, problem: Problem) => void;
}

export class Outgoing {
  /** The entries of the outbox that are shown. */
  #shown = new Set<string>();
  #unlisten: (() => void) | null = null;

  constructor(
    private readonly thread: ThreadContext,
    private readonly options: OutgoingOptions,
    private readonly refresh: () => Promise<void>,
    private readonly followActiveTurn: () => void,
  ) {}

  /** Shows the outcome of each entry from now on. */
  listen(): void {
    this.#unlisten ??= this.options.outbox.on((event) => this.#hear(event));
  }

  stop(): void {
    this.#unlisten?.();
    this.#unlisten = null;
  }

  /** Removes a message that was settled while nobody listened. */
  forgetSettled(): void {
    const { sendingId } = this.thread.current;
    if (sendingId && !this.options.outbox.items.get().some(({ entry }) => entry.id === sendingId)) this.thread.dispatch({ type: "deferred" });
  }

  /** Shows the messages that wait since an earlier visit. */
  showWaiting(): void {
    for (const { entry, state } of itemsIn(this.options.outbox.items.get(), this.thread.id))
      if (state === "waiting" && entry.kind === "message") this.show(entry);
  }

  show(entry: OutgoingMessage): void {
    const { thread } = this;
    if (this.#shown.has(entry.id) || (!isQueued(entry) && thread.current.sending)) return;
    this.#shown.add(entry.id);
    const { id, content, steers = null, model = null } = entry;
    const files = entry.files.map(shownFile);
    if (isQueued(entry)) {
      const createdAt = new Date(entry.createdAt).toISOString();
      const message = { messageId: localId(id), content, files: files.map(filePart), createdAt, held: false, steers, model };
      return thread.dispatch({ type: "queueing", message });
    }
    const edited = thread.current.messages.find((it) => it.id === entry.edited?.id) ?? null;
    thread.dispatch({ type: "sending", entryId: id, content, files, edited });
  }

  /** Shows why the server refused something; `undo`: what was shown before returns. */
  refuse(error: unknown, problem: Problem, undo = true): void {
    this.thread.dispatch({ type: undo ? "refused" : "failed", problem });
    if (problem.fileId) this.options.onFileMissing?.(problem.fileId, problem);
    if (error instanceof ApiError && error.code === "TURN_IN_PROGRESS") void this.refresh();
  }

  #hear(event: OutboxEvent): void {
    const { thread } = this;
    const { entry } = event;
    if (entry.conversationId !== thread.id) return;
    if (event.type === "waiting") {
      if (entry.kind === "message") this.show(entry);
      if (event.unreachable) thread.showConnection("lost");
      return;
    }
    if (event.type === "created") return;
    thread.showConnection("good");
    if (entry.kind === "message") this.#settle(event, entry);
    else if (event.type === "refused") void this.refresh(); // another client decided first, or it was too late
  }

  /** The server has the message or has refused it, or its user withdrew it. */
  #settle(event: OutboxEvent, entry: OutgoingMessage): void {
    const { thread } = this;
    const isShown = this.#shown.delete(entry.id);
    if (event.type === "refused") return this.#refuseMessage(event.error, entry, isShown);
    const outcome = event.type === "sent" ? event.outcome : null;
    if (isShown && isQueued(entry)) {
      const messageId = outcome && "messageId" in outcome ? outcome.messageId : null;
      thread.dispatch({ type: "queued", localId: localId(entry.id), messageId });
    } else if (isShown && outcome && !("messageId" in outcome) && !this.#isKnown(outcome)) {
      thread.dispatch({ type: "started", turn: outcome });
      this.followActiveTurn();
      // The first message gives the conversation its title; the server knows how many versions there are now.
      if (thread.current.conversation?.title && !entry.edited) return;
    } else if (isShown) {
      thread.dispatch({ type: "deferred" }); // others were held before it and go first, or it had arrived before
    }
    void this.refresh();
  }

  /** Whether a turn is shown already: its response was lost, not the message. */
  #isKnown({ userMessageId }: StartedTurnView): boolean {
    return this.thread.current.messages.some((it) => it.id === userMessageId);
  }

  /** The server will never accept a message; its text is back in the composer. */
  #refuseMessage(error: unknown, entry: OutgoingMessage, isShown: boolean): void {
    if (isShown && isQueued(entry)) this.thread.dispatch({ type: "queued", localId: localId(entry.id), messageId: null });
    this.refuse(error, problemOf(error), isShown && !isQueued(entry));
  }
}
