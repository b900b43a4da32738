/** The outbox's entries in IndexedDB, files included; entries that it refuses last as long as the page is open. */

import { type OutboxEntry } from "../outbox/entry.ts";
import { type EntryStore, type StoredEntry } from "../outbox/ports.ts";

const TABLE = "entries";
/** A stuck database never responds; it must not hold up a message. */
const OPENS_WITHIN_MS = 5000;

export class IndexedDbStore implements EntryStore {
  #opening: Promise<IDBDatabase> | null = null;
  #unstored = new Map<string, OutboxEntry>();

  constructor(private readonly name: string) {}

  async all(): Promise<StoredEntry[]> {
    const stored = await this.#run<OutboxEntry[]>("readonly", (table) => table.getAll()).catch(() => []);
    return [
      ...stored.filter((it) => !this.#unstored.has(it.id)).map((entry) => ({ entry, lasts: true })),
      ...[...this.#unstored.values()].map((entry) => ({ entry, lasts: false })),
    ];
  }

  async get(id: string): Promise<OutboxEntry | undefined> {
    return this.#unstored.get(id) ?? this.#run<OutboxEntry | undefined>("readonly", (table) => table.get(id));
  }

  async put(entry: OutboxEntry): Promise<boolean> {
    try {
      await this.#run("readwrite", (table) => table.put(entry));
      this.#unstored.delete(entry.id);
      return true;
    } catch {
      // Private browsing, a full disk, or a browser that forbids it.
      this.#unstored.set(entry.id, entry);
      return false;
    }
  }

  async remove(id: string): Promise<void> {
    this.#unstored.delete(id);
    await this.#run("readwrite", (table) => table.delete(id));
  }

  async #run<T>(mode: IDBTransactionMode, work: (table: IDBObjectStore) => IDBRequest<T>): Promise<T> {
    const database = await this.#open();
    return new Promise((resolve, reject) => {
      // Strict: it is on the disk before the page says that it is kept.
      const transaction = database.transaction(TABLE, mode, { durability: "strict" });
      const request = work(transaction.objectStore(TABLE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  }

  #open(): Promise<IDBDatabase> {
    return (this.#opening ??= new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(this.name, 1);
      setTimeout(() => reject(new Error("The browser's database does not respond")), OPENS_WITHIN_MS);
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE, { keyPath: "id" });
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const database = request.result;
        // The browser closes it when its data is deleted, another tab when it has a newer page.
        database.onclose = () => (this.#opening = null);
        database.onversionchange = () => {
          database.close();
          this.#opening = null;
        };
        resolve(database);
      };
    }).catch((error: unknown) => {
      this.#opening = null;
      throw error;
    }));
  }
}
