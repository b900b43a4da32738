import { type OutboxEntry } from "./entry.ts";
import { type EntryStore, type StoredEntry } from "./ports.ts";

/** Entries that last as long as the program runs. */
export class MemoryStore implements EntryStore {
  #entries = new Map<string, OutboxEntry>();

  async all(): Promise<StoredEntry[]> {
    return [...this.#entries.values()].map((entry) => ({ entry, lasts: false }));
  }

  async get(id: string): Promise<OutboxEntry | undefined> {
    return this.#entries.get(id);
  }

  async put(entry: OutboxEntry): Promise<boolean> {
    this.#entries.set(entry.id, entry);
    return false;
  }

  async remove(id: string): Promise<void> {
    this.#entries.delete(id);
  }
}
