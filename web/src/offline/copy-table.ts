/** The copies in IndexedDB. */

import { type Copy, type Rows, type Table } from "./copy-limits";

const TABLE = "copies";
const SIZES = "sizes";
/** A stuck database never responds. */
const OPENS_WITHIN_MS = 5000;

export class CopyTable implements Table {
  #opening: Promise<IDBDatabase> | null = null;

  constructor(private readonly name: string) {}

  async change<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    const transaction = (await this.#open()).transaction(TABLE, "readwrite");
    const ended = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Error("aborted"));
    });
    ended.catch(() => {}); // `work` may fail first
    try {
      const result = await work(rowsOf(transaction.objectStore(TABLE)));
      await ended;
      return result;
    } catch (error) {
      if (transaction.error === null) abort(transaction);
      throw error;
    }
  }

  #open(): Promise<IDBDatabase> {
    return (this.#opening ??= new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(this.name, 1);
      setTimeout(() => reject(new Error("The browser's database does not respond")), OPENS_WITHIN_MS);
      // Sizes are read without what has that size.
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE, { keyPath: "path" }).createIndex(SIZES, ["at", "size"]);
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        const database = request.result;
        const close = () => {
          database.close();
          this.#opening = null;
        };
        // The browser closes it when its data is deleted, another tab when it has a newer page.
        database.onclose = close;
        database.onversionchange = close;
        resolve(database);
      };
    }).catch((error: unknown) => {
      this.#opening = null;
      throw error;
    }));
  }
}

function abort(transaction: IDBTransaction): void {
  try {
    transaction.abort();
  } catch {
    // It has ended.
  }
}

function rowsOf(table: IDBObjectStore): Rows {
  return {
    get: (path) => result<Copy | undefined>(table.get(path)),
    put: (copy) => result(table.put({ ...copy, size: copy.json.length })),
    delete: (path) => result(table.delete(path)),
    clear: () => result(table.clear()),
    sizes: () =>
      new Promise((resolve, reject) => {
        const found: Awaited<ReturnType<Rows["sizes"]>> = [];
        const request = table.index(SIZES).openKeyCursor();
        request.onerror = () => reject(request.error);
        request.onsuccess = () => {
          const cursor = request.result;
          if (!cursor) return resolve(found);
          const [at, size] = cursor.key as [number, number];
          found.push({ path: cursor.primaryKey as string, at, size });
          cursor.continue();
        };
      }),
  };
}

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
