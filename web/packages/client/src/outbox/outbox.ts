/** Sends what the user has written, once, however long it takes. */

import { freshKey } from "../api-client.ts";
import { pause, type Pause } from "../pause.ts";
import { type ClientToolBody } from "../schema.ts";
import { Delivery, type OutboxEvent } from "./delivery.ts";
import { Entries } from "./entries.ts";
import { isOf, isOfUnknownServer, laneOf, type Account, type NewEntry, type NewMessage, type OutboxEntry, type OutgoingMessage } from "./entry.ts";
import { NO_OTHER_TABS, type EntryStore, type OtherTabs, type OutboxTabMessage, type OutboxTransport } from "./ports.ts";

/** How long another tab may take to send what it has stored, before this one helps. */
const HELP_AFTER_MS = 5000;

export interface OutboxOptions {
  store: EntryStore;
  transport: OutboxTransport;
  tabs?: OtherTabs;
  pause?: Pause;
  /** Offered with every message. */
  tools?: { readonly offered: { tools?: ClientToolBody[] } };
  freshId?: () => string;
  now?: () => number;
}

const DEFAULTS = { tabs: NO_OTHER_TABS, pause, freshId: freshKey, now: Date.now };

export class Outbox {
  #account: Account | null = null;
  #entries: Entries;
  #delivery: Delivery;
  #options: OutboxOptions & typeof DEFAULTS;
  /** The lanes whose entries are being sent. */
  #lanes = new Set<string>();
  #hurry = new AbortController();
  #closing = new AbortController();
  #listeners = new Set<(event: OutboxEvent) => void>();

  constructor(options: OutboxOptions) {
    this.#options = { ...DEFAULTS, ...options };
    const { store, transport, tabs } = this.#options;
    this.#entries = new Entries(store, tabs);
    this.#delivery = new Delivery(this.#entries, transport, tabs, (event) => this.#emit(event));
    tabs.listen((message) => void this.#heard(message));
  }

  /** What is not sent yet, in the order in which it was written. */
  get items(): Entries["items"] {
    return this.#entries.items;
  }

  /** Sends this user's entries from now on, also what an earlier visit left. */
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
    this.#lanes.clear();
    this.#entries.forgetAll();
  }

  on(listener: (event: OutboxEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The entry for something new, which `add` stores and sends: it can be shown before. */
  prepare(written: NewMessage): OutgoingMessage;
  prepare(written: NewEntry): OutboxEntry;
  prepare(written: NewEntry): OutboxEntry {
    if (!this.#account) throw new Error("nobody is signed in");
    const { freshId, now, tools } = this.#options;
    return { ...(written.kind === "message" && tools?.offered), ...written, id: freshId(), account: this.#account, createdAt: this.#entries.timeAfterAll(now()) };
  }

  /** Returns when it is stored; it is sent after that. */
  async add(entry: OutboxEntry): Promise<void> {
    const lasts = await this.#entries.put(entry);
    if (!this.#account || !isOf(entry, this.#account)) return; // signed out meanwhile
    this.#entries.hold([{ entry, lasts }]);
    this.#options.tabs.tell({ type: "stored" });
    this.#work(laneOf(entry));
  }

  /** Sends something and waits until the server has it: true; false if its user withdrew it. A refusal is thrown. */
  deliver(written: NewEntry): Promise<boolean> {
    const entry = this.prepare(written);
    return new Promise((resolve, reject) => {
      const unlisten = this.on((event) => {
        if (event.entry.id !== entry.id || event.type === "waiting" || event.type === "created") return;
        unlisten();
        if (event.type === "refused") reject(event.error);
        else resolve(event.type === "sent");
      });
      void this.add(entry);
    });
  }

  /** Reads what is stored, and sends it. */
  async reload(): Promise<void> {
    const account = this.#account;
    const stored = await this.#entries.stored();
    if (!account || this.#account !== account) return;
    const added = stored.filter(({ entry }) => isOf(entry, account) && !this.#entries.get(entry.id));
    for (const entry of this.#entries.hold(added)) this.#emit({ type: "waiting", entry, unreachable: false });
    this.#workAll();
  }

  /** Tries again without waiting. */
  retry(): void {
    this.#hurry.abort();
    this.#hurry = new AbortController();
  }

  /** Withdraws an entry. An attempt that is under way may still arrive. */
  async withdraw(id: string): Promise<void> {
    const item = this.#entries.get(id);
    if (!item) return;
    this.#entries.forget(id);
    this.#emit({ type: "withdrawn", entry: item.entry });
    await this.#entries.remove(id, { type: "withdrawn" });
  }

  /** What this user has not sent, also of an earlier visit and for an unknown server. */
  async unsent(): Promise<OutboxEntry[]> {
    const account = this.#account;
    if (!account) return [];
    const stored = (await this.#entries.stored().catch(() => [])).map(({ entry }) => entry);
    const mine = stored.filter((it) => isOf(it, account) || isOfUnknownServer(it, account));
    const here = this.items.get().map(({ entry }) => entry);
    return [...here, ...mine.filter(({ id }) => !this.#entries.get(id))];
  }

  /** Deletes what this user has not sent. */
  async discard(): Promise<void> {
    const ids = (await this.unsent()).map(({ id }) => id);
    this.#entries.forgetAll();
    await Promise.all(ids.map((id) => this.#entries.remove(id, { type: "withdrawn" })));
  }

  /** Entries of an older front end, which did not note for which server they were written. They stay until `settleUnknown`. */
  async ofUnknownServer(): Promise<OutboxEntry[]> {
    const account = this.#account;
    return (await this.unsent()).filter((it) => account && isOfUnknownServer(it, account));
  }

  /** Sends entries of an unknown server to this one, or withdraws them. */
  async settleUnknown(areForThis: boolean): Promise<void> {
    const account = this.#account;
    for (const entry of await this.ofUnknownServer()) {
      if (areForThis) await this.#entries.put({ ...entry, account: account! });
      else this.#emit({ type: "withdrawn", entry });
      if (!areForThis) await this.#entries.remove(entry.id, { type: "withdrawn" });
    }
    await this.reload();
  }

  /** Takes in what another tab reports. */
  async #heard(message: OutboxTabMessage): Promise<void> {
    if (message.type === "gone") return this.#delivery.goneElsewhere(message.id, message.became);
    if (message.type === "stored") await this.#options.pause(HELP_AFTER_MS, this.#closing.signal);
    await this.reload();
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
    for (const { entry } of this.items.get()) this.#work(laneOf(entry));
  }

  async #sendAll(lane: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      const next = await this.#options.tabs.alone(lane, () => this.#delivery.attempt(lane, signal));
      if (next === "done" || signal.aborted) return;
      if (next === "more") continue;
      if (next === "signed-out") return this.stop(); // until somebody signs in
      await this.#options.pause(next.afterMs, AbortSignal.any([signal, this.#hurry.signal]));
      if (signal.aborted) return;
    }
  }

  #emit(event: OutboxEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}
