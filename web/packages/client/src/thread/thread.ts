/** One open conversation: calls the server, follows turns, and dispatches events to the reducer. */

import { ApiError, Unreachable, freshKey, get, send } from "../api-client";
import {
  type AbortView,
  type AnswerBody,
  type ConversationDetailView,
  type ConversationPatch,
  type ConversationView,
  type PageView_MessageView,
  type StartedTurnView,
} from "../schema";
import { socket, type News } from "../socket";
import { pause } from "../sse";
import { type OutgoingFile, type OutgoingMessage } from "../outbox/entry";
import { canTakeBack } from "../outbox/outbox";
import { markExpired } from "../../../../src/state/attachments";
import { settleTurn } from "../../../../src/state/conversations";
import { onMyEvent } from "../../../../src/state/my-events";
import { deliver, outbox, shownFile, unsent, unsentIn, type PageOutboxEvent } from "../../../../src/state/outbox";
import { Store } from "../../../../src/state/store";
import { follow } from "../turn/follow";
import { type TurnEvent } from "../turn/events";
import { filePart } from "../turn/files";
import { type Message } from "../turn/parts";
import { Paced } from "./paced";
import { before } from "./path";
import {
  EMPTY,
  PATH_CHANGED,
  isBusy,
  isRunning,
  isWaiting,
  localId,
  mustQueue,
  reduce,
  tipOf,
  type Problem,
  type ThreadAction,
  type ThreadState,
} from "./reduce";

const PAGE = 50;
/** How many messages of a page come after the one that the user opened. */
const AFTER = 20;
const TRIES = 4;
/** A server that shuts down restarts, or another takes its place, within a minute. */
const TRIES_IN_A_DEPLOY = 12;
const CHARACTERS_A_MS = 40;
/** What else is known of a message that is sent. */
interface Sending {
  /** The message that it replaces. */
  edited?: Message | null;
  /** Whether it joins the turn that runs; one with files cannot. */
  steers?: boolean;
  files?: readonly OutgoingFile[];
}

const MOVED: Problem = { code: PATH_CHANGED, message: "" };

export class Thread {
  readonly state = new Store<ThreadState>(EMPTY);
  #closing = new AbortController();
  #following: string | null = null;
  /** Counts path changes here: a response to a request from before such a change is outdated. */
  #changes = 0;
  /** Counts reads: a response is outdated, too, if that of a later request has arrived. */
  #readings = { asked: 0, taken: 0 };
  #unsubscribe: (() => void) | null = null;
  #unlisten: (() => void) | null = null;
  /** The entries of the outbox that are shown. */
  #shown = new Set<string>();

  constructor(readonly id: string) {}

  #dispatch(action: ThreadAction): void {
    this.state.update((state) => reduce(state, action));
  }

  /** Is shown: reads the latest messages and follows the turn that runs, if one does. */
  async join(): Promise<void> {
    if (this.#closing.signal.aborted) this.#closing = new AbortController();
    this.#keepUp();
    this.#watchOutbox();
    const { conversation, sendingId } = this.state.get();
    if (conversation === null) this.#dispatch({ type: "opening" });
    // It may have been settled while nobody looked.
    if (sendingId && !unsent.get().some(({ entry }) => entry.id === sendingId)) this.#dispatch({ type: "deferred" });
    if (!this.state.get().sending) await this.refresh();
    for (const { entry, state } of unsentIn(unsent.get(), this.id)) if (state === "waiting" && entry.kind === "message") this.#show(entry);
  }

  /** It is no longer shown. The turn continues without us. */
  leave(): void {
    this.#closing.abort();
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#unlisten?.();
    this.#unlisten = null;
    this.#following = null;
  }

  /** Shows a new conversation with its first message, which the outbox sends. */
  begin(conversation: ConversationView, first: OutgoingMessage): void {
    this.#dispatch({ type: "made", conversation });
    this.#watchOutbox();
    // An agent may have one conversation with each user: then it is loaded before anything is added.
    if (!conversation.messageCount) this.#show(first);
  }

  /** Reads the latest messages; `whole`: and shows them, whatever the user reads. */
  async refresh(whole = false): Promise<void> {
    const { signal } = this.#closing;
    const changes = this.#changes;
    const reading = ++this.#readings.asked;
    try {
      const conversation = await this.#latest();
      if (signal.aborted || changes !== this.#changes || reading < this.#readings.taken) return;
      this.#readings.taken = reading;
      this.#dispatch({ type: "read", conversation, whole });
      this.#listen(conversation.sessionId);
      this.#followActive();
    } catch (error) {
      await this.#fail(error, () => this.refresh(whole));
    }
  }

  async readOlder(): Promise<void> {
    const { loading, hasOlder, messages } = this.state.get();
    if (loading || !hasOlder) return;
    this.#dispatch({ type: "reading", what: "older" });
    try {
      const page = await this.#page({ beforeSeq: messages[0]?.seq });
      // Drop it if the user has moved to another part meanwhile.
      if (this.state.get().messages[0]?.id !== messages[0]?.id) return;
      if (page.items[0] && page.items[0].id !== messages[0]?.parentId) return this.#dispatch({ type: "failed", problem: MOVED });
      this.#dispatch({ type: "readOlder", messages: page.items.reverse(), hasOlder: page.nextCursor !== null });
    } catch (error) {
      await this.#fail(error);
    }
  }

  async readNewer(): Promise<void> {
    const { loading, hasNewer, messages } = this.state.get();
    if (loading || !hasNewer) return;
    this.#dispatch({ type: "reading", what: "newer" });
    try {
      const page = await this.#page({ order: "asc", afterSeq: messages.at(-1)?.seq });
      if (this.state.get().messages.at(-1)?.id !== messages.at(-1)?.id) return;
      if (page.items[0] && page.items[0].parentId !== messages.at(-1)?.id) return this.#dispatch({ type: "failed", problem: MOVED });
      this.#dispatch({ type: "readNewer", messages: page.items, hasNewer: page.nextCursor !== null });
    } catch (error) {
      await this.#fail(error);
    }
  }

  /** Loads the part around a message, unless it is loaded. */
  async showAt(seq: number): Promise<void> {
    const { conversation, messages } = this.state.get();
    if (!conversation || messages.some((it) => it.seq === seq)) return;
    await this.#jump({ beforeSeq: seq + AFTER });
  }

  /** Reads the end again, after an older part. */
  async showLatest(): Promise<void> {
    if (this.state.get().hasNewer) await this.#jump({});
  }

  async #jump(window: { beforeSeq?: number }): Promise<void> {
    try {
      const { items, nextCursor } = await this.#page(window);
      const hasNewer = window.beforeSeq !== undefined && items[0]?.id !== tipOf(this.state.get());
      this.#dispatch({ type: "jumped", messages: items.reverse(), hasOlder: nextCursor !== null, hasNewer });
      this.#followActive();
    } catch (error) {
      await this.#fail(error);
    }
  }

  /** Sends a message, at the end or in place of `edited`; false if that isn't possible now. True once the outbox has it.

  While a turn runs, it waits until that has ended, or `steers` it; a turn that waits for its user is ended by it. */
  async send(content: string, { edited = null, steers = false, files = [] }: Sending = {}): Promise<boolean> {
    const before = this.state.get();
    if (before.sending || before.choosing) return false;
    const queues = !edited && mustQueue(before);
    if (!queues && isRunning(before) && !isWaiting(before)) return false;
    const tip = tipOf(before);
    const agentId = before.conversation?.agentId ?? null;
    const turnId = steers ? before.live?.message.turnId : undefined;
    const place = queues
      ? { whenBusy: steers ? ("steer" as const) : ("queue" as const), ...(turnId && { steers: turnId }) }
      : { tip, ...(edited && { edited: { id: edited.id, parentId: edited.parentId } }) };
    const written = { kind: "message" as const, conversationId: this.id, agentId, content, files, ...place };
    const entry = outbox.prepare(written) as OutgoingMessage;
    if (!queues && !edited) await this.showLatest();
    this.#changes++;
    this.#show(entry);
    await outbox.add(entry);
    return true;
  }

  /** Shows an entry of the outbox where it will be once the server has it. */
  #show(entry: OutgoingMessage): void {
    if (this.#shown.has(entry.id) || (!entry.whenBusy && this.state.get().sending)) return;
    this.#shown.add(entry.id);
    const { id, content, steers = null } = entry;
    const files = entry.files.map(shownFile);
    if (entry.whenBusy) {
      const createdAt = new Date(entry.createdAt).toISOString();
      const message = { messageId: localId(id), content, files: files.map(filePart), createdAt, held: false, steers };
      return this.#dispatch({ type: "queueing", message });
    }
    const edited = this.state.get().messages.find((it) => it.id === entry.edited?.id) ?? null;
    this.#dispatch({ type: "sending", entryId: id, content, files, edited });
  }

  #watchOutbox(): void {
    this.#unlisten ??= outbox.on((event) => this.#hearOutbox(event));
  }

  #hearOutbox(event: PageOutboxEvent): void {
    const { entry } = event;
    if (entry.conversationId !== this.id) return;
    if (event.type === "waiting") {
      if (entry.kind === "message") this.#show(entry);
      if (event.unreachable) this.#dispatch({ type: "connection", connection: "lost" });
      return;
    }
    if (event.type === "created") return;
    this.#dispatch({ type: "connection", connection: "good" });
    if (entry.kind === "answer") {
      if (event.type === "refused") void this.refresh(); // another client was first, or it was too late
      return;
    }
    const isShown = this.#shown.delete(entry.id);
    if (event.type === "refused") return this.#refuse(event.error, entry, isShown);
    const outcome = event.type === "sent" ? event.outcome : null;
    if (isShown && entry.whenBusy) {
      const messageId = outcome && "messageId" in outcome ? outcome.messageId : null;
      this.#dispatch({ type: "queued", localId: localId(entry.id), messageId });
    } else if (isShown && outcome && !("messageId" in outcome) && !this.#knows(outcome)) {
      this.#dispatch({ type: "started", turn: outcome });
      this.#followActive();
      // The first message gives the conversation its title; the server knows how many versions there are now.
      if (this.state.get().conversation?.title && !entry.edited) return;
    } else if (isShown) {
      this.#dispatch({ type: "deferred" }); // others were held before it and go first, or it had arrived before
    }
    void this.refresh();
  }

  /** Whether a turn is shown already: its answer was lost, not the message. */
  #knows({ userMessageId }: StartedTurnView): boolean {
    return this.state.get().messages.some((it) => it.id === userMessageId);
  }

  async regenerate(replaced: Message): Promise<boolean> {
    if (isBusy(this.state.get())) return false;
    const tip = tipOf(this.state.get());
    this.#dispatch({ type: "regenerating", replaced });
    const started = await this.#start({ messageId: replaced.id, tip });
    // A turn may have begun although its answer was lost.
    if (!started && this.state.get().problem?.code !== PATH_CHANGED) await this.refresh();
    return started;
  }

  /** Shows a sibling of a message and what follows it, here and wherever the conversation is open. */
  async choose(messageId: string, replaced: Message): Promise<void> {
    await this.#choose(messageId, async () => {
      const conversation = await this.#latest();
      const at = conversation.messages.findIndex((it) => it.parentId === replaced.parentId);
      if (at >= 0) {
        const messages = conversation.messages.slice(at);
        return this.#dispatch({ type: "chosen", conversation, replaced, messages, hasNewer: false });
      }
      const parent = before(this.state.get().messages, replaced).at(-1);
      if (!parent) return this.refresh(true);
      // The branch is long: load it from its beginning, for the user looks there.
      const { items, nextCursor } = await this.#page({ order: "asc", afterSeq: parent.seq });
      this.#dispatch({ type: "chosen", conversation, replaced, messages: items, hasNewer: nextCursor !== null });
    });
  }

  /** Shows the branch with a message, and that message. */
  async showBranch(messageId: string, seq: number): Promise<void> {
    await this.#choose(messageId, async () => {
      await this.refresh(true);
      await this.showAt(seq);
    });
  }

  /** Shows the path that another client has chosen or continued. */
  async showPath(): Promise<void> {
    this.#dispatch({ type: "dismissed" });
    await this.refresh(true);
  }

  async #choose(messageId: string, show: () => Promise<void>): Promise<void> {
    if (isBusy(this.state.get())) return;
    const tip = tipOf(this.state.get());
    this.#changes++;
    this.#dispatch({ type: "choosing" });
    try {
      await send("POST", `/api/conversations/${this.id}/path`, { messageId, tip });
      await show();
      this.#dispatch({ type: "settled" });
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#fall(error, withoutText(error));
    }
  }

  /** A new conversation with everything up to a message. */
  async fork(messageId: string): Promise<ConversationView> {
    return send<ConversationView>("POST", `/api/conversations/${this.id}/fork`, { messageId });
  }

  /** Stops the turn; or takes the message back that could not be sent yet. */
  async stop(): Promise<void> {
    const { sendingId } = this.state.get();
    const item = unsent.get().find(({ entry }) => entry.id === sendingId);
    if (item && canTakeBack(item)) return outbox.withdraw(item.entry.id);
    this.#dispatch({ type: "stopping" });
    try {
      await send<AbortView>("POST", `/api/conversations/${this.id}/abort`);
    } catch (error) {
      await this.#fail(error);
    }
  }

  async change(patch: ConversationPatch): Promise<void> {
    const conversation = await send<ConversationView>("PATCH", `/api/conversations/${this.id}`, patch);
    this.#dispatch({ type: "changed", conversation });
  }

  /** Another client has set the title. */
  retitle(title: string | null): void {
    const { conversation } = this.state.get();
    if (conversation && conversation.title !== title) this.#dispatch({ type: "changed", conversation: { ...conversation, title } });
  }

  dismiss(): void {
    this.#dispatch({ type: "dismissed" });
  }

  async #latest(): Promise<ConversationDetailView> {
    return get<ConversationDetailView>(`/api/conversations/${this.id}`, {}, this.#closing.signal);
  }

  async #page(window: { order?: "asc"; beforeSeq?: number; afterSeq?: number }): Promise<PageView_MessageView> {
    const query = { order: "desc", limit: PAGE, ...window };
    const path = `/api/conversations/${this.id}/messages`;
    return get<PageView_MessageView>(path, query, this.#closing.signal);
  }

  /** Regenerates; a request whose response was lost is repeated, which never starts a second turn. */
  async #start(body: object): Promise<boolean> {
    this.#changes++;
    try {
      const turn = await this.#post<StartedTurnView>("regenerate", body);
      this.#dispatch({ type: "started", turn });
      this.#followActive();
      return true;
    } catch (error) {
      this.#fall(error, withoutText(error));
      return false;
    }
  }

  /** Sends a request with a key, a few times if need be. */
  async #post<T>(call: string, body?: object): Promise<T> {
    const headers = { "Idempotency-Key": freshKey() };
    let tries = TRIES;
    for (let attempt = 1; ; attempt++) {
      try {
        return await send<T>("POST", `/api/conversations/${this.id}/${call}`, body, headers);
      } catch (error) {
        const ends = error instanceof ApiError && error.code === "SHUTTING_DOWN";
        if (ends) tries = TRIES_IN_A_DEPLOY;
        if (!(ends || error instanceof Unreachable) || attempt >= tries) throw error;
        this.#dispatch({ type: "connection", connection: "lost" });
        await pause(Math.min(attempt, 5) * 1000, this.#closing.signal);
      }
    }
  }

  /** Changes a message that waits for its turn. */
  async editQueued(messageId: string, content: string): Promise<void> {
    await this.#changeQueued("PATCH", messageId, content);
  }

  async removeQueued(messageId: string): Promise<void> {
    await this.#changeQueued("DELETE", messageId, null);
  }

  /** Sends a held message now; the others follow it. */
  async sendHeld(messageId: string): Promise<void> {
    await this.#changingQueue(() => this.#post(`queued/${messageId}/send`));
  }

  async #changeQueued(method: "PATCH" | "DELETE", messageId: string, content: string | null): Promise<void> {
    const path = `/api/conversations/${this.id}/queued/${messageId}`;
    await this.#changingQueue(() => send(method, path, content === null ? undefined : { content }));
    this.#dispatch({ type: "requeued", messageId, content });
  }

  async #changingQueue(change: () => Promise<unknown>): Promise<void> {
    this.#changes++;
    try {
      await change();
    } finally {
      void this.refresh(); // it may have been sent meanwhile
    }
  }

  /** Answers what a turn asks; false if the user took the answer back before it could be sent. */
  async answer(turnId: string, requestId: string, body: AnswerBody): Promise<boolean> {
    this.#watchOutbox();
    return deliver({ kind: "answer", conversationId: this.id, turnId, requestId, body });
  }

  /** The server will never accept a message; its text is back in the composer. */
  #refuse(error: unknown, entry: OutgoingMessage, isShown: boolean): void {
    if (isShown && entry.whenBusy) this.#dispatch({ type: "queued", localId: localId(entry.id), messageId: null });
    this.#fall(error, problemOf(error), isShown && !entry.whenBusy);
  }

  /** Shows why something was refused; `undoes`: what was shown before returns. */
  #fall(error: unknown, problem: Problem, undoes = true): void {
    this.#dispatch({ type: undoes ? "refused" : "failed", problem });
    if (problem.fileId) markExpired(problem.fileId, problem);
    if (error instanceof ApiError && error.code === "TURN_IN_PROGRESS") void this.refresh();
  }

  #followActive(): void {
    const turnId = this.state.get().live?.message.turnId;
    if (!turnId || this.#following === turnId) return;
    this.#following = turnId;
    void this.#follow(turnId);
  }

  async #follow(turnId: string): Promise<void> {
    const { signal } = this.#closing;
    const paced = new Paced<TurnEvent>(
      (events) => this.#dispatch({ type: "events", turnId, events }),
      () => this.#drawingMs(),
    );
    const follower = {
      onEvents: (events: TurnEvent[]) => paced.add(events),
      onLost: () => this.#dispatch({ type: "connection", connection: "lost" }),
      onBack: () => this.#dispatch({ type: "connection", connection: "good" }),
    };
    try {
      await follow(turnId, follower, signal);
    } catch (error) {
      await this.#fail(error);
    }
    paced.flush();
    if (signal.aborted) return;
    // A message to a turn that waited has begun another, which is followed already.
    if (this.#following === turnId) this.#following = null;
    this.#dispatch({ type: "ended", turnId });
    // If messages are queued, the conversation continues with the next.
    if (!this.state.get().queued.length) settleTurn(turnId);
    // The stored message is the last word: it has what no event carries.
    await this.refresh();
  }

  /** Markdown's last block is parsed again with each piece: a long one is drawn less often, to leave time for typing. */
  #drawingMs(): number {
    const last = this.state.get().live?.message.parts.at(-1);
    const text = last?.type === "text" ? last.text : "";
    return (text.length - Math.max(0, text.lastIndexOf("\n\n"))) / CHARACTERS_A_MS;
  }

  /** Another tab or program may start a turn here or choose a branch: the socket reports both. */
  #listen(sessionId: string | undefined): void {
    if (!sessionId || this.#unsubscribe || this.#closing.signal.aborted) return;
    this.#unsubscribe = socket.subscribe(sessionId, (news) => this.#hear(news));
  }

  #hear(news: News): void {
    const state = this.state.get();
    if (news.type === "moved") {
      if (state.choosing || news.tip === tipOf(state)) return;
      // Ask first if the user reads an older part.
      if (state.hasNewer) this.#dispatch({ type: "failed", problem: MOVED });
      else void this.refresh();
    } else if ((news.type === "missed" || news.turnId !== this.#following) && !state.sending) {
      void this.refresh();
    }
  }

  /** Another tab may change the queue; changes missed while the socket was closed are loaded when the user returns. */
  #keepUp(): void {
    const { signal } = this.#closing;
    const look = () => {
      const { loading, sending, choosing } = this.state.get();
      if (!document.hidden && !loading && !sending && !choosing) void this.refresh();
    };
    const forget = onMyEvent(({ type, conversationId }) => {
      if (type === "conversation_changed" && conversationId === this.id) look();
    });
    signal.addEventListener("abort", forget);
    window.addEventListener("focus", look, { signal });
    document.addEventListener("visibilitychange", look, { signal });
  }

  async #fail(error: unknown, again?: () => Promise<void>): Promise<void> {
    if (this.#closing.signal.aborted) return;
    if (error instanceof Unreachable && again) {
      this.#dispatch({ type: "connection", connection: "lost" });
      await pause(2000, this.#closing.signal);
      if (!this.#closing.signal.aborted) await again();
      return;
    }
    this.#dispatch({ type: "failed", problem: problemOf(error) });
  }
}

/** The same if there was no text to lose. */
function withoutText(error: unknown): Problem {
  return error instanceof Unreachable ? { code: "SERVER_UNREACHABLE", message: error.message } : problemOf(error);
}

export function problemOf(error: unknown): Problem {
  if (error instanceof ApiError) {
    const { code, message } = error;
    const fileId = code === "FILE_NOT_FOUND" ? (error.details as { fileId?: string } | null)?.fileId : undefined;
    return { code, message, ...(fileId && { fileId }) };
  }
  if (error instanceof Unreachable) return { code: "UNREACHABLE", message: error.message };
  throw error;
}

