/** Sends what the user has written, once, however long it takes. Pure: the browser and the server are given to it. */

import { inOrder, isOf, laneOf, type Account, type Entry, type OutgoingFile, type OutgoingMessage } from "./entry";
import { verdictOn, type Failure } from "./verdict";
import { type KeptFile } from "../turn/files";

/** Where entries outlive the page. */
export interface EntryStore {
  all(): Promise<Stored[]>;
  /** Undefined only if it is not there; what can't be read is an error. */
  get(id: string): Promise<Entry | undefined>;
  /** Whether it will still be there after a reload. */
  put(entry: Entry): Promise<boolean>;
  remove(id: string): Promise<void>;
}

export interface Stored {
  entry: Entry;
  /** Whether it outlives the page. */
  lasts: boolean;
}

/** How entries reach the server. `C` is a new conversation, `O` what the server answers. */
export interface Transport<C, O> {
  upload(file: OutgoingFile): Promise<KeptFile>;
  /** The same key never creates a second one. */
  create(agentId: string | null, key: string): Promise<{ id: string; conversation: C }>;
  send(entry: Entry): Promise<O>;
  failureIn(error: unknown): Failure;
  /** The file that the server does not have, if that is why it refused. */
  missingFile(error: unknown): string | null;
}

export interface Surroundings {
  freshId(): string;
  now(): number;
  /** Waits; shorter if the signal is aborted. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
  /** Runs while no other tab runs the same. */
  alone<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Tells the other tabs; `heard` takes in what they say. */
  tell(news: TabNews): void;
}

export type TabNews =
  | { type: "stored" }
  | { type: "waiting" }
  /** It is no longer an entry: the server has it, has refused it, or its user took it back. */
  | { type: "gone"; id: string };

/** An entry as the page shows it. */
export interface Item extends Stored {
  /** `waiting`: an attempt failed, and the next one comes later. */
  state: "sending" | "waiting";
}

export type OutboxEvent<C, O> =
  | { type: "waiting"; entry: Entry; unreachable: boolean }
  /** The conversation of a first message exists. */
  | { type: "created"; entry: OutgoingMessage; conversation: C }
  /** The server has it; without an outcome, another tab knows more. */
  | { type: "sent"; entry: Entry; outcome: O | null }
  /** The server will never accept it. */
  | { type: "refused"; entry: Entry; error: unknown }
  /** Its user took it back. */
  | { type: "withdrawn"; entry: Entry };

/** Whether its user can take it back: it waits, or nothing of it is on its way but files. */
export function canTakeBack({ entry, state }: Item): boolean {
  return state === "waiting" || (entry.kind === "message" && entry.files.some(({ kept }) => !kept));
}

type NewMessage = Omit<OutgoingMessage, "id" | "account" | "createdAt">;
type NewAnswer = Omit<Extract<Entry, { kind: "answer" }>, "id" | "account" | "createdAt">;
export type NewEntry = NewMessage | NewAnswer;

/** How long another tab may take to send what it has stored, before this one helps. */
const HELP_AFTER_MS = 5000;

export class Outbox<C, O> {
  #account: Account | null = null;
  #items = new Map<string, Item>();
  #attempts = new Map<string, number>();
  #lanes = new Set<string>();
  #newest = -Infinity;
  #hurry = new AbortController();
  #closing = new AbortController();
  #listeners = new Set<(event: OutboxEvent<C, O>) => void>();
  #onChange: (items: readonly Item[]) => void;

  constructor(
    private readonly store: EntryStore,
    private readonly transport: Transport<C, O>,
    private readonly around: Surroundings,
    onChange: (items: readonly Item[]) => void,
  ) {
    this.#onChange = onChange;
  }

  /** Sends this user's entries from now on, also those of an earlier visit. */
  async start(account: Account): Promise<void> {
    this.stop();
    this.#account = account;
    this.#closing = new AbortController();
    await this.reload();
  }

  /** Sends nothing more. What is stored stays. */
  stop(): void {
    this.#account = null;
    this.#closing.abort();
    this.#items.clear();
    this.#attempts.clear();
    this.#lanes.clear();
    this.#changed();
  }

  on(listener: (event: OutboxEvent<C, O>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  items(): readonly Item[] {
    return inOrder([...this.#items.values()].map(({ entry }) => entry)).map(({ id }) => this.#items.get(id)!);
  }

  /** The entry for something new, which `add` stores and sends: it can be shown before. */
  prepare(written: NewEntry): Entry {
    if (!this.#account) throw new Error("nobody is signed in");
    return { ...written, id: this.around.freshId(), account: this.#account, createdAt: this.#after(this.around.now()) };
  }

  /** Returns when it is stored; it is sent after that. */
  async add(entry: Entry): Promise<void> {
    const lasts = await this.#put(entry);
    if (!this.#isMine(entry)) return; // signed out meanwhile
    this.#items.set(entry.id, { entry, state: this.#stateIn(laneOf(entry)), lasts });
    this.#changed();
    this.around.tell({ type: "stored" });
    this.#work(laneOf(entry));
  }

  /** Reads what is stored, and sends it. */
  async reload(): Promise<void> {
    const account = this.#account;
    const stored = await this.store.all();
    if (!account || this.#account !== account) return;
    for (const { entry, lasts } of stored.filter((it) => isOf(it.entry, account) && !this.#items.has(it.entry.id))) {
      const state = this.#stateIn(laneOf(entry));
      this.#items.set(entry.id, { entry, state, lasts });
      if (state === "waiting") this.#emit({ type: "waiting", entry, unreachable: false });
    }
    this.#changed();
    this.#workAll();
  }

  /** Tries again without waiting. */
  retry(): void {
    this.#hurry.abort();
    this.#hurry = new AbortController();
  }

  /** Takes an entry back. An attempt that is under way may still arrive. */
  async withdraw(id: string): Promise<void> {
    const item = this.#items.get(id);
    if (!item) return;
    this.#forget(id);
    this.#emit({ type: "withdrawn", entry: item.entry });
    await this.#remove(id);
  }

  /** Deletes what this user has not sent. */
  async discard(): Promise<void> {
    const ids = [...this.#items.keys()];
    for (const id of ids) this.#forget(id);
    await Promise.all(ids.map((id) => this.#remove(id)));
  }

  /** Takes in what another tab says. */
  async heard(news: TabNews): Promise<void> {
    if (news.type === "gone") {
      const item = this.#items.get(news.id);
      if (!item) return;
      this.#forget(news.id);
      this.#emit({ type: "sent", entry: item.entry, outcome: null });
      return;
    }
    if (news.type === "stored") await this.around.pause(HELP_AFTER_MS, this.#closing.signal);
    await this.reload();
  }

  /** A time after that of every other entry, also if the clock was set back: entries are sent in this order. */
  #after(now: number): number {
    const others = [...this.#items.values()].map(({ entry }) => entry.createdAt);
    return (this.#newest = Math.max(now, ...[this.#newest, ...others].map((it) => it + 1)));
  }

  /** An entry behind a waiting one waits, too. */
  #stateIn(lane: string): Item["state"] {
    return [...this.#items.values()].some((it) => it.state === "waiting" && laneOf(it.entry) === lane) ? "waiting" : "sending";
  }

  #isMine(entry: Entry): boolean {
    return this.#account !== null && isOf(entry, this.#account);
  }

  /** Starts sending a lane's entries, unless that is under way. */
  #work(lane: string): void {
    if (this.#lanes.has(lane)) return;
    this.#lanes.add(lane);
    const { signal } = this.#closing;
    void this.#sendAll(lane, signal).finally(() => {
      if (signal.aborted) return;
      this.#lanes.delete(lane);
      this.#workAll(); // a first message has got another lane with its conversation
    });
  }

  #workAll(): void {
    for (const { entry } of this.#items.values()) this.#work(laneOf(entry));
  }

  async #sendAll(lane: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      const next = await this.around.alone(lane, () => this.#sendFirst(lane, signal));
      if (next === "done" || signal.aborted) return;
      if (next === "more") continue;
      await this.around.pause(next.afterMs, AbortSignal.any([signal, this.#hurry.signal]));
      if (signal.aborted) return;
    }
  }

  /** One attempt at the first entry of a lane, while no other tab makes one. */
  async #sendFirst(lane: string, signal: AbortSignal): Promise<"done" | "more" | { afterMs: number }> {
    if (signal.aborted) return "done";
    const item = this.items().find(({ entry }) => laneOf(entry) === lane);
    if (!item) return "done";
    const latest = await this.#latest(item);
    if (!latest) {
      // Another tab has sent it while this one waited, and said so unless it was closed.
      await this.heard({ type: "gone", id: item.entry.id });
      return "more";
    }
    if (signal.aborted) return "done";
    this.#update(latest, {});
    try {
      const entry = await this.#prepared(latest, signal);
      if (!entry) return "more"; // taken back meanwhile
      const outcome = await this.transport.send(entry);
      await this.#remove(entry.id);
      this.#forget(entry.id);
      if (!signal.aborted) this.#emit({ type: "sent", entry, outcome });
      return "more";
    } catch (error) {
      return signal.aborted ? "done" : this.#failed(item.entry.id, error);
    }
  }

  /** The entry with what it needs on the server: its files and its conversation. Each step is stored.

  Null if it was taken back meanwhile. */
  async #prepared(entry: Entry, signal: AbortSignal): Promise<Entry | null> {
    if (entry.kind === "answer") return entry;
    let ready = entry;
    for (const file of entry.files) {
      if (file.kept) continue;
      const kept = await this.transport.upload(file);
      ready = { ...ready, files: ready.files.map((it) => (it.key === file.key ? { ...it, kept } : it)) };
      if (!(await this.#keep(ready, signal))) return null;
    }
    if (ready.conversationId !== null) return ready;
    const { id, conversation } = await this.transport.create(ready.agentId, ready.id);
    ready = { ...ready, conversationId: id };
    if (!(await this.#keep(ready, signal))) return null;
    this.#emit({ type: "created", entry: ready, conversation });
    return ready;
  }

  async #failed(id: string, error: unknown): Promise<"done" | "more" | { afterMs: number }> {
    const item = this.#items.get(id);
    if (!item) return "more"; // taken back meanwhile
    const uploadsAgain = forgetFile(item.entry, this.transport.missingFile(error));
    if (uploadsAgain) {
      await this.#keep(uploadsAgain, this.#closing.signal);
      return "more";
    }
    const failure = this.transport.failureIn(error);
    const attempts = (this.#attempts.get(id) ?? 0) + 1;
    this.#attempts.set(id, attempts);
    const verdict = verdictOn(failure, attempts);
    if (verdict.kind === "final") {
      this.#forget(id);
      // Listeners return the text before the entry is removed, so that it is always in at least one place.
      this.#emit({ type: "refused", entry: item.entry, error });
      await this.#remove(id);
      return "more";
    }
    for (const { entry } of this.items()) {
      if (laneOf(entry) !== laneOf(item.entry)) continue;
      this.#update(entry, { state: "waiting" });
      this.#emit({ type: "waiting", entry, unreachable: failure.kind === "unreachable" });
    }
    if (attempts === 1) this.around.tell({ type: "waiting" });
    if (verdict.kind === "again") return { afterMs: verdict.afterMs };
    this.stop(); // until somebody signs in
    return "done";
  }

  /** An entry as another tab may have stored it meanwhile; nothing if it is gone. */
  async #latest({ entry, lasts }: Item): Promise<Entry | undefined> {
    // If the store can't tell, it is sent: its key keeps it from happening twice.
    return lasts ? this.store.get(entry.id).catch(() => entry) : entry;
  }

  async #put(entry: Entry): Promise<boolean> {
    return this.store.put(entry).catch(() => false);
  }

  /** Stores how far an entry has got; false if it was taken back: then it must not return. */
  async #keep(entry: Entry, signal: AbortSignal): Promise<boolean> {
    if (!this.#items.has(entry.id) || signal.aborted) return false;
    const lasts = await this.#put(entry);
    if (signal.aborted) return false;
    if (!this.#items.has(entry.id)) {
      await this.#remove(entry.id);
      return false;
    }
    this.#update(entry, { lasts });
    return true;
  }

  async #remove(id: string): Promise<void> {
    await this.store.remove(id).catch(() => {}); // if it stays, its key keeps it from happening twice
    this.around.tell({ type: "gone", id });
  }

  #update(entry: Entry, changes: Partial<Item>): void {
    const item = this.#items.get(entry.id);
    if (!item) return;
    this.#items.set(entry.id, { ...item, entry, ...changes });
    this.#changed();
  }

  #forget(id: string): void {
    this.#attempts.delete(id);
    if (this.#items.delete(id)) this.#changed();
  }

  #changed(): void {
    this.#onChange(this.items());
  }

  #emit(event: OutboxEvent<C, O>): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}

/** The entry without the server's copy of a file, if this browser can upload it again. */
function forgetFile(entry: Entry, fileId: string | null): Entry | null {
  if (entry.kind !== "message" || fileId === null) return null;
  if (!entry.files.some((it) => it.kept?.fileId === fileId && it.source)) return null;
  return { ...entry, files: entry.files.map((it) => (it.kept?.fileId === fileId ? { ...it, kept: null } : it)) };
}
