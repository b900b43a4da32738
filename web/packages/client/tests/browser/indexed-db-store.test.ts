import { type OutboxEntry } from "../../src/index";
import { afterEach, expect, it, vi } from "vitest";

import { IndexedDbStore } from "../../src/browser/indexed-db-store";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const entry: OutboxEntry = {
  kind: "message",
  id: "k1",
  account: { server: "http://h/", userId: "alice" },
  createdAt: 1,
  conversationId: "c",
  agentId: null,
  content: "hi",
  files: [],
};

it("keeps an entry as long as the page is open if the browser's database never answers", async () => {
  vi.useFakeTimers();
  vi.stubGlobal("indexedDB", { open: () => ({}) });
  const store = new IndexedDbStore("outbox");
  const lasts = store.put(entry);
  await vi.runAllTimersAsync();
  expect(await lasts).toBe(false);
  const all = store.all();
  await vi.runAllTimersAsync();
  expect(await all).toEqual([{ entry, lasts: false }]);
});

it("tells an entry that is gone from one that can't be read", async () => {
  vi.stubGlobal("indexedDB", {
    open: () => {
      throw new Error("forbidden");
    },
  });
  await expect(new IndexedDbStore("outbox").get("k1")).rejects.toThrow("forbidden");
});
