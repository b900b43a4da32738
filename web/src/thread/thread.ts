/** One open conversation: calls the server, follows turns, and dispatches events to the reducer. */

import { ApiError, Unreachable, freshKey, get, send } from "../api/client";
import {
  type AbortView,
  type AnswerBody,
  type ConversationDetailView,
  type ConversationPatch,
  type ConversationView,
  type MessageBody,
  type PageView_MessageView,
  type QueuedView,
  type StartedTurnView,
  type SteeredView,
} from "../api/schema";
import { socket, type News } from "../api/socket";
import { pause } from "../api/sse";
import { markExpired } from "../state/attachments";
import { settleTurn } from "../state/conversations";
import { onMyEvent } from "../state/my-events";
import { Store } from "../state/store";
import { follow } from "../turn/follow";
import { type TurnEvent } from "../turn/events";
import { filePart, type KeptFile } from "../turn/files";
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
/** The outcome of sending: the message started a turn, is queued, or joins the running turn. */
type SentView = StartedTurnView | QueuedView | SteeredView;

/** What else is known of a message that is sent. */
interface Sending {
  /** The message that it replaces. */
  edited?: Message | null;
  /** Whether it joins the turn that runs; one with files cannot. */
  steers?: boolean;
  files?: readonly KeptFile[];
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

  constructor(readonly id: string) {}

  #dispatch(action: ThreadAction): void {
    this.state.update((state) => reduce(state, action));
  }

  /** Is shown: reads the latest messages and follows the turn that runs, if one does. */
  async join(): Promise<void> {
    if (this.#closing.signal.aborted) this.#closing = new AbortController();
    this.#keepUp();
    if (this.state.get().conversation === null) this.#dispatch({ type: "opening" });
    if (!this.state.get().sending) await this.refresh();
  }

  /** It is no longer shown. The turn continues without us. */
  leave(): void {
    this.#closing.abort();
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#following = null;
  }

  /** Sends the first message of a new conversation, or the next one if the agent already has a conversation. */
  async begin(conversation: ConversationView, content: string, files: readonly KeptFile[] = []): Promise<boolean> {
    this.#dispatch({ type: "made", conversation });
    if (conversation.messageCount) await this.refresh();
    return this.send(content, { files });
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

  /** Sends a message, at the end or in place of `edited`; false if the server didn't accept it.

  While a turn runs, it waits until that has ended, or `steers` it; a turn that waits for its user is ended by it. */
  async send(content: string, { edited = null, steers = false, files = [] }: Sending = {}): Promise<boolean> {
    const before = this.state.get();
    if (before.sending || before.choosing) return false;
    if (!edited && mustQueue(before)) return this.#queue(content, files, steers);
    if (isRunning(before) && !isWaiting(before)) return false;
    const tip = tipOf(this.state.get());
    if (!edited) await this.showLatest();
    this.#dispatch({ type: "sending", content, files, edited });
    const body: MessageBody = { ...bodyOf(content, files), tip, ...(edited && { parentId: edited.parentId }) };
    const started = await this.#start("messages", body, freshKey());
    // The server knows how many versions there are now.
    if (started && edited) void this.refresh();
    return started;
  }

  async regenerate(replaced: Message): Promise<boolean> {
    if (isBusy(this.state.get())) return false;
    const tip = tipOf(this.state.get());
    this.#dispatch({ type: "regenerating", replaced });
    const started = await this.#start("regenerate", { messageId: replaced.id, tip });
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
      if (!this.#closing.signal.aborted) this.#refuse(error, withoutText(error));
    }
  }

  /** A new conversation with everything up to a message. */
  async fork(messageId: string): Promise<ConversationView> {
    return send<ConversationView>("POST", `/api/conversations/${this.id}/fork`, { messageId });
  }

  async stop(): Promise<void> {
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

  /** Starts a turn. With a key, a request whose response was lost is repeated; that never starts a second turn. */
  async #start(call: "messages" | "regenerate", body: object, key?: string): Promise<boolean> {
    this.#changes++;
    try {
      this.#take(await this.#post(call, body, key));
      return true;
    } catch (error) {
      this.#refuse(error, key ? problemOf(error) : withoutText(error));
      return false;
    }
  }

  #take(sent: SentView): void {
    if ("messageId" in sent) {
      // Others were held before it, and go first.
      this.#dispatch({ type: "deferred" });
      void this.refresh();
      return;
    }
    this.#dispatch({ type: "started", turn: sent });
    this.#followActive();
    // The first message gives the conversation its title; the list may show others.
    if (!this.state.get().conversation?.title) void this.refresh();
  }

  async #post(call: "messages" | "regenerate", body: object, key?: string): Promise<SentView> {
    const headers: Record<string, string> = key ? { "Idempotency-Key": key } : {};
    let tries = TRIES;
    for (let attempt = 1; ; attempt++) {
      try {
        return await send<SentView>("POST", `/api/conversations/${this.id}/${call}`, body, headers);
      } catch (error) {
        const ends = error instanceof ApiError && error.code === "SHUTTING_DOWN";
        if (ends) tries = TRIES_IN_A_DEPLOY;
        if (!(ends || error instanceof Unreachable) || !key || attempt >= tries) throw error;
        this.#dispatch({ type: "connection", connection: "lost" });
        await pause(Math.min(attempt, 5) * 1000, this.#closing.signal);
      }
    }
  }

  /** Sends a message that joins the running turn, or that the next one answers. */
  async #queue(content: string, files: readonly KeptFile[], steers: boolean): Promise<boolean> {
    const key = freshKey();
    const id = localId(key);
    const turnId = this.state.get().live?.message.turnId ?? null;
    const message = { messageId: id, content, files: files.map(filePart), createdAt: new Date().toISOString(), held: false };
    this.#changes++;
    this.#dispatch({ type: "queueing", message: { ...message, steers: steers ? turnId : null } });
    try {
      const body: MessageBody = { ...bodyOf(content, files), whenBusy: steers ? "steer" : "queue" };
      const sent = await this.#post("messages", body, key);
      this.#dispatch({ type: "queued", localId: id, messageId: "messageId" in sent ? sent.messageId : null });
      void this.refresh();
      return true;
    } catch (error) {
      this.#dispatch({ type: "queued", localId: id, messageId: null });
      this.#refuse(error, problemOf(error));
      return false;
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
    await this.#queuedCall("POST", `${messageId}/send`);
  }

  async #changeQueued(method: "PATCH" | "DELETE", messageId: string, content: string | null): Promise<void> {
    await this.#queuedCall(method, messageId, content === null ? undefined : { content });
    this.#dispatch({ type: "requeued", messageId, content });
  }

  async #queuedCall(method: "POST" | "PATCH" | "DELETE", path: string, body?: object): Promise<void> {
    this.#changes++;
    try {
      await send(method, `/api/conversations/${this.id}/queued/${path}`, body);
    } finally {
      void this.refresh(); // it may have been sent meanwhile
    }
  }

  /** Answers what a turn asks. */
  async answer(turnId: string, requestId: string, body: AnswerBody): Promise<void> {
    try {
      await send("POST", `/api/turns/${turnId}/approvals/${requestId}`, body);
    } catch (error) {
      // Another client was first, or it was too late: load the result.
      if (error instanceof ApiError && [404, 409, 410].includes(error.status)) void this.refresh();
      throw error;
    }
  }

  #refuse(error: unknown, problem: Problem): void {
    this.#dispatch({ type: "refused", problem });
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

function bodyOf(content: string, files: readonly KeptFile[]): MessageBody {
  return files.length ? { content, files: files.map((it) => it.fileId) } : { content };
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

