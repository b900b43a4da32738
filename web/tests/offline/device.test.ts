import { afterEach, beforeEach, expect, it } from "vitest";

import { choose } from "../../src/offline/choice";
import { conversationIn, excess, LARGEST, MOST, MOST_CONVERSATIONS, type Copy, type Rows, type Table } from "../../src/offline/copy-limits";
import { Device } from "../../src/offline/device";
import { COPIES, DELETING } from "../../src/offline/storage";

/** The tables of all tabs: what one transaction does is undone if it fails. */
class MemoryTable implements Table {
  rows = new Map<string, Copy>();
  /** How many characters fit. */
  room = Infinity;

  async change<T>(work: (rows: Rows) => Promise<T>): Promise<T> {
    const before = new Map(this.rows);
    const { rows } = this;
    try {
      return await work({
        get: async (path) => rows.get(path),
        put: async (copy) => {
          rows.set(copy.path, copy);
          const size = [...rows.values()].reduce((sum, it) => sum + it.json.length, 0);
          if (size > this.room) throw new DOMException("full", "QuotaExceededError");
        },
        delete: async (path) => rows.delete(path),
        clear: async () => rows.clear(),
        sizes: async () => [...rows.values()].map(({ path, at, json }) => ({ path, at, size: json.length })),
      });
    } catch (error) {
      this.rows = before;
      throw error;
    }
  }
}

const alice = { id: "alice", role: "user" as const, installation: "a" };
const bob = { id: "bob", role: "user" as const, installation: "a" };
const pathOf = (id: string | number) => `/api/conversations/${id}`;

let table: MemoryTable;
let device: Device;

beforeEach(async () => {
  const { dataset } = document.documentElement;
  dataset["offline"] = "True";
  dataset["embedded"] = "True"; // people sign in: without a choice, nothing is kept
  table = new MemoryTable();
  device = new Device(table);
  choose("alice", true);
  await device.own(alice);
});

afterEach(() => {
  delete document.documentElement.dataset["offline"];
  delete document.documentElement.dataset["embedded"];
  localStorage.clear();
});

it("gives back what it was given, to its user only", async () => {
  await device.keep(alice, pathOf("c1"), { title: "Tea" });
  expect(await device.owner()).toEqual(alice);
  expect(await device.read(alice, pathOf("c1"))).toEqual({ title: "Tea" });
  expect(await device.read(bob, pathOf("c1"))).toBeUndefined();
});

it("keeps nothing unless its user wants it, and deletes everything when they no longer do", async () => {
  await device.keep(alice, pathOf("c1"), { title: "Tea" });
  choose("alice", false);
  await device.own(alice);
  expect(table.rows.size).toBe(0);
  await device.keep(alice, pathOf("c1"), { title: "Tea" });
  expect([table.rows.size, await device.owner()]).toEqual([0, undefined]);
});

it("has nothing of one user for the next", async () => {
  await device.keep(alice, pathOf("c1"), { title: "Tea" });
  choose("bob", true);
  await device.own(bob);
  expect(await device.all()).toEqual([]);
  // A tab of Alice's that is still open.
  await device.keep(alice, pathOf("c1"), { title: "Tea" });
  expect(await device.all()).toEqual([]);
});

it("has nothing of one server for another at the same address", async () => {
  await device.keep(alice, pathOf("c1"), { title: "Tea" });
  const elsewhere = { ...alice, installation: "b" };
  expect(await device.read(elsewhere, pathOf("c1"))).toBeUndefined();
  await device.own(elsewhere);
  // A tab of the first server that is still open.
  await device.keep(alice, pathOf("c1"), { title: "Tea" });
  expect(await device.all()).toEqual([]);
});

it("takes nothing from a tab that has not heard yet that its user signed out", async () => {
  await device.clear();
  await device.keep(alice, pathOf("c1"), { title: "Tea" });
  expect([table.rows.size, await device.owner()]).toEqual([0, undefined]);
});

it("finishes a sign-out that the browser was closed during, and the user decides anew", async () => {
  await device.keep(alice, pathOf("c1"), { title: "Tea" });
  localStorage.setItem(COPIES, DELETING);
  expect([await device.owner(), table.rows.size, localStorage.getItem(COPIES)]).toEqual([undefined, 0, null]);
  await device.own(alice);
  expect(table.rows.size).toBe(0);
});

it("does not read copies that a page with another API has kept", async () => {
  await device.keep(alice, pathOf("c1"), { title: "Tea" });
  table.rows.set("", { path: "", json: JSON.stringify({ me: alice, shape: "older" }), at: 0 });
  expect(await device.owner()).toBeUndefined();
  await device.own(alice);
  expect(await device.all()).toEqual([]);
});

it("makes room on a full disk, and gives up quietly where there is none", async () => {
  for (let at = 1; at <= 40; at++) await device.keep(alice, pathOf(at), "x".repeat(100), at);
  table.room = 4000;
  await device.keep(alice, pathOf("new"), "x".repeat(100), 100);
  const kept = (await device.all()).map(({ path }) => conversationIn(path));
  expect(kept).toContain("new");
  expect(kept).not.toContain("1");
  table.room = 10;
  await expect(device.keep(alice, pathOf("newer"), "x", 101)).rejects.toThrow("full");
  expect(await device.read(alice, pathOf("newer"))).toBeUndefined();
});

it("drops what has become too large, rather than showing an old copy", async () => {
  await device.keep(alice, pathOf("c1"), "short");
  await device.keep(alice, pathOf("c1"), "x".repeat(LARGEST));
  expect(await device.all()).toEqual([]);
});

it("has room for so many conversations, and never gives up the lists", () => {
  const lists = [{ path: "/api/agents", at: 0, size: 10 }, { path: "/api/conversations", at: 0, size: 10 }];
  const conversations = Array.from({ length: MOST_CONVERSATIONS + 2 }, (_, at) => ({ path: pathOf(at), at, size: 10 }));
  expect(excess([...conversations].reverse().concat(lists))).toEqual([pathOf(0), pathOf(1)]);
  const large = conversations.slice(0, 5).map((it) => ({ ...it, size: MOST / 4 }));
  expect(excess([...lists, ...large])).toEqual([pathOf(0), pathOf(1)]);
});
