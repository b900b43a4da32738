/** One open conversation: asks the server, follows turns, and tells the reducer what happened. */

import { ApiError, Unreachable, freshKey, get, send } from "../api/client";
import {
  type AbortView,
  type ConversationDetailView,
  type ConversationView,
  type PageView_MessageView,
  type StartedTurnView,
} from "../api/schema";
import { socket } from "../api/socket";
import { Store } from "../state/store";
import { follow, pause } from "../turn/follow";
import { type TurnEvent } from "../turn/events";
import { Paced } from "./paced";
import { EMPTY, isRunning, reduce, type Problem, type ThreadAction, type ThreadState } from "./reduce";

const PAGE = 50;
/** So many of a page come after the message that one came for. */
const AFTER = 20;
const TRIES = 4;
const CHARACTERS_A_MS = 40;

export class Thread {
  readonly state = new Store<ThreadState>(EMPTY);
  #closing = new AbortController();
  #following: string | null = null;
  #unsubscribe: (() => void) | null = null;

  constructor(
    readonly id: string,
    /** A turn has begun or ended, so the list of conversations has changed. */
    private readonly onTurn: () => void,
  ) {}

  #tell(action: ThreadAction): void {
    this.state.update((state) => reduce(state, action));
  }

  /** Is shown: reads the latest messages and follows the turn that runs, if one does. */
  async join(): Promise<void> {
    if (this.#closing.signal.aborted) this.#closing = new AbortController();
    if (this.state.get().conversation === null) this.#tell({ type: "opening" });
    if (!this.state.get().sending) await this.refresh();
  }

  /** Is no longer shown. The turn goes on without us. */
  leave(): void {
    this.#closing.abort();
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#following = null;
  }

  /** Says the first thing in a conversation that has just been made. */
  async begin(conversation: ConversationView, content: string): Promise<boolean> {
    this.#tell({ type: "made", conversation });
    return this.send(content);
  }

  async refresh(): Promise<void> {
    const { signal } = this.#closing;
    try {
      const [conversation, page] = await Promise.all([
        get<ConversationDetailView>(`/api/conversations/${this.id}`, {}, signal),
        this.#page({}),
      ]);
      if (signal.aborted) return;
      this.#tell({ type: "read", conversation, messages: page.items, hasOlder: page.nextCursor !== null });
      this.#listen(conversation.sessionId);
      this.#followActive();
    } catch (error) {
      await this.#fail(error, () => this.refresh());
    }
  }

  async readOlder(): Promise<void> {
    const { loading, hasOlder, messages } = this.state.get();
    if (loading || !hasOlder) return;
    this.#tell({ type: "reading", what: "older" });
    try {
      const page = await this.#page({ beforeSeq: messages[0]?.seq });
      // Whoever has gone to another part meanwhile does not get it.
      if (this.state.get().messages[0]?.seq !== messages[0]?.seq) return;
      this.#tell({ type: "readOlder", messages: page.items, hasOlder: page.nextCursor !== null });
    } catch (error) {
      await this.#fail(error);
    }
  }

  async readNewer(): Promise<void> {
    const { loading, hasNewer, messages } = this.state.get();
    if (loading || !hasNewer) return;
    this.#tell({ type: "reading", what: "newer" });
    try {
      const page = await this.#page({ order: "asc", afterSeq: messages.at(-1)?.seq });
      if (this.state.get().messages.at(-1)?.seq !== messages.at(-1)?.seq) return;
      this.#tell({ type: "readNewer", messages: page.items, hasNewer: page.nextCursor !== null });
    } catch (error) {
      await this.#fail(error);
    }
  }

  /** Reads the part around a message, unless it is there. */
  async showAt(seq: number): Promise<void> {
    const { conversation, messages } = this.state.get();
    if (!conversation || messages.some((it) => it.seq === seq)) return;
    const beforeSeq = seq + AFTER;
    await this.#jump({ beforeSeq }, (newest) => newest === beforeSeq - 1);
  }

  /** Reads the end again, after an older part. */
  async showLatest(): Promise<void> {
    if (this.state.get().hasNewer) await this.#jump({}, () => false);
  }

  async #jump(window: { beforeSeq?: number }, hasNewer: (newestSeq: number | undefined) => boolean): Promise<void> {
    try {
      const { items, nextCursor } = await this.#page(window);
      this.#tell({ type: "jumped", messages: items, hasOlder: nextCursor !== null, hasNewer: hasNewer(items[0]?.seq) });
      this.#followActive();
    } catch (error) {
      await this.#fail(error);
    }
  }

  /** Says something; false when the server did not take it. */
  async send(content: string): Promise<boolean> {
    if (isRunning(this.state.get())) return false;
    await this.showLatest();
    this.#tell({ type: "sending", content });
    return this.#start(`/api/conversations/${this.id}/messages`, { content });
  }

  async regenerate(): Promise<boolean> {
    if (isRunning(this.state.get())) return false;
    this.#tell({ type: "regenerating" });
    const started = await this.#start(`/api/conversations/${this.id}/regenerate`);
    if (!started) await this.refresh();
    return started;
  }

  async stop(): Promise<void> {
    this.#tell({ type: "stopping" });
    try {
      await send<AbortView>("POST", `/api/conversations/${this.id}/abort`);
    } catch (error) {
      await this.#fail(error);
    }
  }

  async change(patch: { title?: string | null; status?: "active" | "archived" }): Promise<void> {
    const conversation = await send<ConversationView>("PATCH", `/api/conversations/${this.id}`, patch);
    this.#tell({ type: "changed", conversation });
    this.onTurn();
  }

  /** Somebody else has given the conversation a title. */
  retitle(title: string | null): void {
    const { conversation } = this.state.get();
    if (conversation && conversation.title !== title) this.#tell({ type: "changed", conversation: { ...conversation, title } });
  }

  dismiss(): void {
    this.#tell({ type: "dismissed" });
  }

  async #page(window: { order?: "asc"; beforeSeq?: number; afterSeq?: number }): Promise<PageView_MessageView> {
    const query = { order: "desc", include: "overwritten", limit: PAGE, ...window };
    const path = `/api/conversations/${this.id}/messages`;
    return get<PageView_MessageView>(path, query, this.#closing.signal);
  }

  /** Starts a turn. A lost answer is asked for again under the same key: there is never a second turn. */
  async #start(path: string, body?: unknown): Promise<boolean> {
    const key = freshKey();
    for (let attempt = 1; ; attempt++) {
      try {
        const turn = await send<StartedTurnView>("POST", path, body, { "Idempotency-Key": key });
        this.#tell({ type: "started", turn });
        this.#followActive();
        this.onTurn();
        // The first message gives the conversation its title; the list may show others.
        if (!this.state.get().conversation?.title) void this.refresh();
        return true;
      } catch (error) {
        // Regenerating knows no key, so it is not tried twice.
        if (error instanceof Unreachable && body !== undefined && attempt < TRIES) {
          this.#tell({ type: "connection", connection: "lost" });
          await pause(attempt * 1000, this.#closing.signal);
          continue;
        }
        this.#tell({ type: "refused", problem: problemOf(error) });
        if (error instanceof ApiError && error.code === "TURN_IN_PROGRESS") void this.refresh();
        return false;
      }
    }
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
      (events) => this.#tell({ type: "events", turnId, events }),
      () => this.#drawingMs(),
    );
    const follower = {
      onEvents: (events: TurnEvent[]) => paced.add(events),
      onLost: () => this.#tell({ type: "connection", connection: "lost" }),
      onBack: () => this.#tell({ type: "connection", connection: "good" }),
    };
    try {
      await follow(turnId, follower, signal);
    } catch (error) {
      await this.#fail(error);
    }
    paced.flush();
    if (signal.aborted) return;
    this.#following = null;
    this.#tell({ type: "ended", turnId });
    this.onTurn();
    // The stored message is the last word: it has what no event carries.
    await this.refresh();
  }

  /** Markdown's last block is read anew with each piece: a long one is drawn less often, to leave time for typing. */
  #drawingMs(): number {
    const last = this.state.get().live?.message.parts.at(-1);
    const text = last?.type === "text" ? last.text : "";
    return (text.length - Math.max(0, text.lastIndexOf("\n\n"))) / CHARACTERS_A_MS;
  }

  /** Another tab or program may begin a turn here: its start is told over the socket. */
  #listen(sessionId: string | undefined): void {
    if (!sessionId || this.#unsubscribe || this.#closing.signal.aborted) return;
    this.#unsubscribe = socket.subscribe(sessionId, (turnId) => {
      if (turnId !== this.#following && !this.state.get().sending) void this.refresh();
    });
  }

  async #fail(error: unknown, again?: () => Promise<void>): Promise<void> {
    if (this.#closing.signal.aborted) return;
    if (error instanceof Unreachable && again) {
      this.#tell({ type: "connection", connection: "lost" });
      await pause(2000, this.#closing.signal);
      if (!this.#closing.signal.aborted) await again();
      return;
    }
    this.#tell({ type: "failed", problem: problemOf(error) });
  }
}

export function problemOf(error: unknown): Problem {
  if (error instanceof ApiError) return { code: error.code, message: error.message };
  if (error instanceof Unreachable) return { code: "UNREACHABLE", message: error.message };
  throw error;
}

