/** The user's entries: in memory, in the store, and as they are shown. */

import { Store } from "../store.ts";
import { compareEntries, laneOf, type OutboxEntry } from "./entry.ts";
import { type Became, type EntryStore, type OtherTabs, type StoredEntry } from "./ports.ts";

/** An entry as it is shown. */
export interface OutboxItem extends StoredEntry {
  /** `waiting`: an attempt failed, and the next one comes later. */
  state: "sending" | "waiting";
  /** How many attempts have failed. */
  failures: number;
}

/** Whether its user can withdraw it: it waits, or nothing of it is on its way but files. */
export function canWithdraw({ entry, state }: OutboxItem): boolean {
  return state === "waiting" || (entry.kind === "message" && entry.files.some(({ kept }) => !kept));
}

/** The items of a conversation. */
export function itemsIn(items: readonly OutboxItem[], conversationId: string): readonly OutboxItem[] {
  return items.filter(({ entry }) => entry.conversationId === conversationId);
}

export class Entries {
  /** In the order in which they were written. */
  readonly items = new Store<readonly OutboxItem[]>([]);
  #byId = new Map<string, OutboxItem>();
  /** What was sent, refused or withdrawn: for a moment it may still be in the store. */
  #gone = new Set<string>();
  #newest = -Infinity;

  constructor(
    private readonly store: EntryStore,
    private readonly tabs: OtherTabs,
  ) {}

  get(id: string): OutboxItem | undefined {
    return this.#byId.get(id);
  }

  inLane(lane: string): OutboxItem[] {
    return this.items.get().filter(({ entry }) => laneOf(entry) === lane);
  }

  /** A time after that of every other entry, also if the clock was set back: entries are sent in this order. */
  timeAfterAll(now: number): number {
    const others = [...this.#byId.values()].map(({ entry }) => entry.createdAt);
    return (this.#newest = Math.max(now, ...[this.#newest, ...others].map((it) => it + 1)));
  }

  /** Stores an entry; returns whether it outlives the page. */
  async put(entry: OutboxEntry): Promise<boolean> {
    return this.store.put(entry).catch(() => false);
  }

  /** All entries in the store, of whichever user. */
  async stored(): Promise<StoredEntry[]> {
    return this.store.all();
  }

  /** Adds stored entries; returns those that wait, since they are behind one that does. */
  hold(stored: readonly StoredEntry[]): OutboxEntry[] {
    const waiting: OutboxEntry[] = [];
    for (const { entry, lasts } of stored) {
      if (this.#gone.has(entry.id)) continue;
      const lane = laneOf(entry);
      const state = [...this.#byId.values()].some((it) => it.state === "waiting" && laneOf(it.entry) === lane) ? "waiting" : "sending";
      this.#byId.set(entry.id, { entry, lasts, state, failures: 0 });
      if (state === "waiting") waiting.push(entry);
    }
    this.#publish();
    return waiting;
  }

  /** An entry as another tab may have stored it meanwhile; undefined if it is gone. */
  async latest({ entry, lasts }: OutboxItem): Promise<OutboxEntry | undefined> {
    // If the store doesn't know, it is sent: its key keeps it from happening twice.
    return lasts ? this.store.get(entry.id).catch(() => entry) : entry;
  }

  /** Stores how far an entry has got; false if it was withdrawn: then it must not return. */
  async keep(entry: OutboxEntry, signal: AbortSignal): Promise<boolean> {
    if (!this.#byId.has(entry.id) || signal.aborted) return false;
    const lasts = await this.put(entry);
    if (signal.aborted) return false;
    if (!this.#byId.has(entry.id)) {
      await this.remove(entry.id, { type: "withdrawn" });
      return false;
    }
    this.update(entry, { lasts });
    return true;
  }

  update(entry: OutboxEntry, changes: Partial<OutboxItem> = {}): void {
    const item = this.#byId.get(entry.id);
    if (!item) return;
    this.#byId.set(entry.id, { ...item, entry, ...changes });
    this.#publish();
  }

  /** Removes it from memory, and doesn't take it in again. */
  forget(id: string): void {
    this.#gone.add(id);
    if (this.#byId.delete(id)) this.#publish();
  }

  forgetAll(): void {
    this.#byId.clear();
    this.#publish();
  }

  /** Tells the other tabs what became of it, and removes it from the store.

  In this order, since they take what is gone without a word for sent, and the tab may end in between. */
  async remove(id: string, became: Became): Promise<void> {
    this.tabs.tell({ type: "gone", id, became });
    await this.store.remove(id).catch(() => {}); // if it stays, its key keeps it from happening twice
  }

  #publish(): void {
    this.items.set([...this.#byId.values()].toSorted((a, b) => compareEntries(a.entry, b.entry)));
  }
}
