/** Reads a conversation's messages: the latest, and older parts of its path. */

import { type Copies } from "../copies.ts";
import { ApiError, Unreachable } from "../errors.ts";
import { type ConversationDetailView, type PageView_MessageView } from "../schema.ts";
import { type ThreadContext } from "./context.ts";
import { MOVED, tipOf } from "./state.ts";

const PAGE = 50;
/** How many messages of a page come after the one that the user opened. */
const AFTER = 20;

export class Reading {
  /** Counts path changes here: a response to a request from before such a change is outdated. */
  #changes = 0;
  /** Counts reads: a response is outdated, too, if the response of a later request has arrived. */
  #readings = { asked: 0, taken: 0 };

  constructor(
    private readonly thread: ThreadContext,
    private readonly followActiveTurn: () => void,
    private readonly copies: Copies,
  ) {}

  /** Makes responses to earlier requests outdated, since the user is changing the conversation. */
  outdate(): void {
    this.#changes++;
  }

  /** Reads the latest messages; `whole`: and shows them, even if the user reads an older part. */
  async refresh(whole = false): Promise<void> {
    const { signal } = this.thread;
    const changes = this.#changes;
    const reading = ++this.#readings.asked;
    try {
      const conversation = await this.latest();
      if (signal.aborted || changes !== this.#changes || reading < this.#readings.taken) return;
      this.#readings.taken = reading;
      this.thread.dispatch({ type: "read", conversation, whole });
      this.copies.keep(this.thread.path(), conversation);
      this.thread.showConnection("good");
      this.followActiveTurn();
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.copies.drop(this.thread.path());
      const isShown = error instanceof Unreachable && (await this.#showCopy(signal));
      if (signal.aborted) return;
      const reread = this.thread.fail(error, () => this.refresh(whole));
      if (!isShown) await reread;
    }
  }

  /** Shows what this device has until the server can be reached; false if it has nothing, or more is shown already. */
  async #showCopy(signal: AbortSignal): Promise<boolean> {
    if (this.thread.current.conversation) return false;
    const copy = await this.copies.read<ConversationDetailView>(this.thread.path());
    if (!copy || signal.aborted || this.thread.current.conversation) return false;
    // What ran then has ended since, or is followed once the server can be reached.
    this.thread.dispatch({ type: "read", conversation: { ...copy, activeTurnId: null, queued: [] } });
    return true;
  }

  async readOlder(): Promise<void> {
    const { loading, hasOlder, messages } = this.thread.current;
    if (loading || !hasOlder) return;
    this.thread.dispatch({ type: "reading", what: "older" });
    try {
      const page = await this.page({ beforeSeq: messages[0]?.seq });
      // Drop it if the user has moved to another part meanwhile.
      if (this.thread.current.messages[0]?.id !== messages[0]?.id) return;
      if (page.items[0] && page.items[0].id !== messages[0]?.parentId) return this.thread.showProblem(MOVED);
      this.thread.dispatch({ type: "readOlder", messages: page.items.reverse(), hasOlder: page.nextCursor !== null });
    } catch (error) {
      await this.thread.fail(error);
    }
  }

  async readNewer(): Promise<void> {
    const { loading, hasNewer, messages } = this.thread.current;
    if (loading || !hasNewer) return;
    this.thread.dispatch({ type: "reading", what: "newer" });
    try {
      const page = await this.page({ order: "asc", afterSeq: messages.at(-1)?.seq });
      if (this.thread.current.messages.at(-1)?.id !== messages.at(-1)?.id) return;
      if (page.items[0] && page.items[0].parentId !== messages.at(-1)?.id) return this.thread.showProblem(MOVED);
      this.thread.dispatch({ type: "readNewer", messages: page.items, hasNewer: page.nextCursor !== null });
    } catch (error) {
      await this.thread.fail(error);
    }
  }

  /** Loads the part around a message, unless it is loaded. */
  async showAt(seq: number): Promise<void> {
    const { conversation, messages } = this.thread.current;
    if (!conversation || messages.some((it) => it.seq === seq)) return;
    await this.#jump({ beforeSeq: seq + AFTER });
  }

  /** Reads the end again, after an older part. */
  async showLatest(): Promise<void> {
    if (this.thread.current.hasNewer) await this.#jump({});
  }

  async #jump(window: { beforeSeq?: number }): Promise<void> {
    try {
      const { items, nextCursor } = await this.page(window);
      const hasNewer = window.beforeSeq !== undefined && items[0]?.id !== tipOf(this.thread.current);
      this.thread.dispatch({ type: "jumped", messages: items.reverse(), hasOlder: nextCursor !== null, hasNewer });
      this.followActiveTurn();
    } catch (error) {
      await this.thread.fail(error);
    }
  }

  /** The conversation with its latest messages. */
  async latest(): Promise<ConversationDetailView> {
    return this.thread.api.get<ConversationDetailView>(this.thread.path(), {}, this.thread.signal);
  }

  /** A page of messages, the newest first unless `order` says otherwise. */
  async page(window: { order?: "asc"; beforeSeq?: number; afterSeq?: number }): Promise<PageView_MessageView> {
    const query = { order: "desc", limit: PAGE, ...window };
    return this.thread.api.get<PageView_MessageView>(this.thread.path("/messages"), query, this.thread.signal);
  }
}
