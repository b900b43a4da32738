/** The user's active conversations, newest activity first, as far as the list was read, and all pinned ones. */

import { type ApiClient } from "../api-client.ts";
import { NO_COPIES, type Copies } from "../copies.ts";
import { type ConversationPatch, type ConversationView, type PageView_ConversationView } from "../schema.ts";
import { Store } from "../store.ts";

const PATH = "/api/conversations";
const PAGE = 40;
const MOST_PINNED = 100;
const MOST_COPIED = 300;

export interface ConversationListState {
  items: readonly ConversationView[];
  nextCursor: string | null;
  state: "loading" | "ready" | "failed";
}

const UNREAD: ConversationListState = { items: [], nextCursor: null, state: "loading" };

export class ConversationList {
  readonly state = new Store<ConversationListState>(UNREAD);
  /** Counts reads: a response older than the shown one is too late. */
  #readings = { asked: 0, shown: 0 };
  /** Counts the user's changes here: a response to an earlier request doesn't include them. */
  #changes = 0;

  constructor(
    private readonly api: ApiClient,
    private readonly copies: Copies = NO_COPIES,
  ) {}

  /** Reads the first page and the pinned ones again; older ones that were read stay. */
  refresh = async (): Promise<void> => {
    const reading = ++this.#readings.asked;
    const before = this.#changes;
    try {
      const [first, pinned] = await Promise.all([this.#page({}), this.#page({ pinned: true, limit: MOST_PINNED })]);
      if (reading < this.#readings.shown) return;
      if (before !== this.#changes) return this.refresh();
      this.#readings.shown = reading;
      this.state.update((list) => {
        const fresh = new Set(first.items.map((it) => it.id));
        const oldest = (first.nextCursor && first.items.at(-1)?.updatedAt) ?? ""; // without a next page nothing is below
        const below = list.items.filter((it) => !fresh.has(it.id) && !it.pinned && it.updatedAt < oldest);
        const nextCursor = below.length ? list.nextCursor : first.nextCursor;
        const items = [...first.items, ...pinned.items.filter((it) => !fresh.has(it.id)), ...below];
        return { items, nextCursor, state: "ready" };
      });
      this.#keepCopy();
    } catch {
      const copy = this.state.get().items.length ? undefined : await this.copies.read<ConversationView[]>(PATH);
      if (reading < this.#readings.shown) return;
      this.state.update((list) => {
        const items = list.items.length ? list.items : (copy ?? []);
        return { ...list, items, state: items.length || copy ? "ready" : "failed" };
      });
    }
  };

  readMore = async (): Promise<void> => {
    const { nextCursor, state } = this.state.get();
    if (!nextCursor || state !== "ready") return;
    this.state.update((list) => ({ ...list, state: "loading" }));
    try {
      const more = await this.#page({ cursor: nextCursor });
      this.state.update((list) => {
        if (list.nextCursor !== nextCursor) return list; // it was read again meanwhile, from its start
        const known = new Set(list.items.map((it) => it.id));
        const items = [...list.items, ...more.items.filter((it) => !known.has(it.id))];
        return { items, nextCursor: more.nextCursor, state: "ready" };
      });
    } catch {
      this.state.update((list) => (list.nextCursor === nextCursor ? { ...list, state: "failed" } : list));
    }
  };

  /** Changes one and updates the list immediately, or removes it if it is archived. */
  async change(id: string, patch: ConversationPatch): Promise<ConversationView> {
    const changed = await this.api.send<ConversationView>("PATCH", `/api/conversations/${id}`, patch);
    this.#changes++;
    if (patch.status === "active") await this.refresh();
    this.state.update((list) => ({
      ...list,
      items: list.items.map((it) => (it.id === id ? changed : it)).filter((it) => it.status === "active"),
    }));
    return changed;
  }

  async delete(id: string): Promise<void> {
    await this.api.send("DELETE", `/api/conversations/${id}`);
    this.drop(id);
  }

  async restore(id: string): Promise<void> {
    await this.api.send("POST", `/api/conversations/${id}/restore`);
    await this.refresh();
  }

  /** Removes one that was deleted, here or elsewhere. */
  drop(id: string): void {
    this.#changes++;
    this.copies.drop(`${PATH}/${id}`);
    const list = this.state.get();
    const items = list.items.filter((it) => it.id !== id);
    if (items.length === list.items.length) return;
    this.state.set({ ...list, items });
    this.#keepCopy();
  }

  /** Shows at once that a turn has ended. */
  markTurnEnded(turnId: string): void {
    this.state.update((list) => {
      if (!list.items.some((it) => it.activeTurnId === turnId)) return list;
      return { ...list, items: list.items.map((it) => (it.activeTurnId === turnId ? { ...it, activeTurnId: null } : it)) };
    });
  }

  /** Empties the list when the user signs out. */
  forget(): void {
    this.#readings.shown = ++this.#readings.asked;
    this.state.set(UNREAD);
  }

  #keepCopy(): void {
    this.copies.keep(PATH, this.state.get().items.slice(0, MOST_COPIED));
  }

  #page(query: { cursor?: string; limit?: number; pinned?: boolean }): Promise<PageView_ConversationView> {
    return this.api.get<PageView_ConversationView>(PATH, { limit: PAGE, status: "active", ...query });
  }
}
