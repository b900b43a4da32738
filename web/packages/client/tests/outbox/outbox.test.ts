import { beforeEach, describe, expect, it } from "vitest";

import { ApiError, Unreachable } from "../../src/errors";
import { type OutboxEvent } from "../../src/outbox/delivery";
import { canWithdraw, type OutboxItem } from "../../src/outbox/entries";
import { laneOf, type NewEntry, type OutboxEntry, type OutgoingFile, type OutgoingMessage } from "../../src/outbox/entry";
import { Outbox } from "../../src/outbox/outbox";
import { type EntryStore, type OutboxTabMessage, type OutboxTransport, type SentView, type StoredEntry } from "../../src/outbox/ports";
import { verdictOn } from "../../src/outbox/verdict";
import { type ConversationView } from "../../src/schema";

/** What several tabs, and one tab after the other, find in the browser. */
class Disk implements EntryStore {
  entries = new Map<string, OutboxEntry>();
  isFull = false;
  isUnreadable = false;
  /** What it could not store, and keeps as long as the page is open. */
  unstored = new Map<string, OutboxEntry>();
  onRemoved = async () => {};

  async all(): Promise<StoredEntry[]> {
    const stored = (entries: Map<string, OutboxEntry>, lasts: boolean) => [...entries.values()].map((entry) => ({ entry, lasts }));
    return [...stored(this.entries, true), ...stored(this.unstored, false)];
  }
  async get(id: string): Promise<OutboxEntry | undefined> {
    if (this.isUnreadable) throw new Error("unreadable");
    return this.entries.get(id);
  }
  async put(entry: OutboxEntry): Promise<boolean> {
    if (this.isFull) this.unstored.set(entry.id, entry);
    if (this.isFull) return false;
    this.entries.set(entry.id, structuredClone(entry));
    return true;
  }
  async remove(id: string): Promise<void> {
    this.entries.delete(id);
    this.unstored.delete(id);
    await this.onRemoved();
  }
}

const refused = (status: number, code: string, retryAfterMs: number | null = null) => new ApiError(status, code, "", null, null, retryAfterMs);
const UNREACHABLE = new Unreachable();

/** A server that knows its keys; `fails` is thrown by the next calls, in order, `loses`: after they took effect. */
class Server implements OutboxTransport {
  messages = new Map<string, OutboxEntry>();
  conversations = new Map<string, string>();
  uploads: string[] = [];
  asked: string[] = [];
  fails: unknown[] = [];
  loses: unknown[] = [];
  onAsked = () => {};
  /** Which server it is; whoever asks for it learns nothing else. */
  id = "A";
  installation = async () => this.id;
  beforeUpload: Promise<void> | null = null;

  #meet(call: string, effect: () => void): void {
    this.asked.push(call);
    this.onAsked();
    const failure = this.fails.shift();
    if (failure) throw failure;
    effect();
    const loss = this.loses.shift();
    if (loss) throw loss;
  }

  upload = async (file: OutgoingFile) => {
    await this.beforeUpload;
    this.#meet(`upload ${file.fileName}`, () => this.uploads.push(file.fileName));
    return { fileId: `f${this.uploads.length}`, fileName: file.fileName, mediaType: "text/plain", size: 1 };
  };
  create = async (agentId: string | null, key: string) => {
    this.#meet(`create ${agentId}`, () => this.conversations.set(key, this.conversations.get(key) ?? `c${this.conversations.size + 1}`));
    return { id: this.conversations.get(key)! } as ConversationView;
  };
  send = async (entry: OutboxEntry) => {
    this.#meet(`send ${entry.kind === "message" ? entry.content : entry.requestId}`, () => this.messages.set(entry.id, entry));
    return { turnId: `took ${entry.id}` } as SentView;
  };
}

/** Locks that all tabs of a browser share. */
class Locks {
  #held = new Map<string, Promise<unknown>>();

  alone = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    const before = this.#held.get(name) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#held.set(name, mine.catch(() => {}));
    return mine;
  };
}

let disk: Disk;
let server: Server;
let locks: Locks;
let tabs: Tab[];
let ids = 0;
let clock: () => number;

class Tab {
  events: OutboxEvent[] = [];
  /** What the tab waits for; `wake` ends all of it. */
  pauses: { ms: number; end: () => void }[] = [];
  isCrashed = false;
  /** Takes in what another tab tells. */
  hear: (message: OutboxTabMessage) => void = () => {};
  readonly outbox: Outbox;

  constructor(readonly userId = "alice", readonly address = "http://h/", readonly installation?: string) {
    this.outbox = new Outbox({
      store: disk,
      transport: server,
      freshId: () => `k${++ids}`,
      now: () => clock(),
      pause: (ms, signal) =>
        new Promise((resolve) => {
          this.pauses.push({ ms, end: resolve });
          signal?.addEventListener("abort", () => resolve());
        }),
      tabs: {
        alone: locks.alone,
        tell: (message: OutboxTabMessage) => {
          if (this.isCrashed) return;
          // As a browser does: of an error, only the message arrives.
          for (const tab of tabs) if (tab !== this && !tab.isCrashed) tab.hear(JSON.parse(JSON.stringify(message)) as OutboxTabMessage);
        },
        listen: (hear) => {
          this.hear = hear;
        },
      },
    });
    this.outbox.on((event) => this.events.push(event));
    tabs.push(this);
  }

  get items(): readonly OutboxItem[] {
    return this.outbox.items.get();
  }

  async open(): Promise<this> {
    const { address, userId, installation } = this;
    await this.outbox.start({ server: address, userId, ...(installation && { installation }) });
    await quiet();
    return this;
  }

  async write(message: Partial<OutgoingMessage> & { content: string }): Promise<OutboxEntry> {
    const entry = this.outbox.prepare({ kind: "message", conversationId: "c", agentId: "g", files: [], tip: "m1", ...message } as NewEntry);
    await this.outbox.add(entry);
    await quiet();
    return entry;
  }

  /** Ends without a word, as when the browser is killed. */
  crash(): void {
    this.isCrashed = true;
    this.outbox.stop();
  }

  async wake(): Promise<void> {
    for (const { end } of this.pauses.splice(0)) end();
    await quiet();
  }

  told(): string[] {
    return this.events.map(({ type }) => type);
  }
}

async function quiet(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}

const contents = () => [...server.messages.values()].map((it) => (it.kind === "message" ? it.content : it.requestId));

beforeEach(() => {
  disk = new Disk();
  server = new Server();
  locks = new Locks();
  tabs = [];
  clock = () => ids;
});

describe("a message", () => {
  it("is stored before it is sent, and forgotten once the server has it", async () => {
    const tab = await new Tab().open();
    const stored: boolean[] = [];
    server.onAsked = () => stored.push(disk.entries.size === 1);
    const entry = tab.outbox.prepare({ kind: "message", conversationId: "c", agentId: null, content: "hi", files: [] });
    await tab.outbox.add(entry);
    await quiet();
    expect(stored).toEqual([true]);
    expect(contents()).toEqual(["hi"]);
    expect(disk.entries.size).toBe(0);
    expect(tab.events).toEqual([{ type: "sent", entry, outcome: { turnId: `took ${entry.id}` } }]);
    expect(tab.items).toEqual([]);
  });

  it("outlives a crash, and is sent by whoever opens the page next", async () => {
    server.fails = [UNREACHABLE];
    const first = await new Tab().open();
    const entry = await first.write({ content: "hi" });
    expect(first.items).toMatchObject([{ state: "waiting", lasts: true }]);
    first.crash();
    const next = await new Tab().open();
    expect(contents()).toEqual(["hi"]);
    expect([...server.messages.keys()]).toEqual([entry.id]);
    expect(next.told()).toEqual(["sent"]);
  });

  it("whose response was lost is sent again with the same key", async () => {
    server.loses = [UNREACHABLE];
    const tab = await new Tab().open();
    await tab.write({ content: "hi" });
    expect(tab.told()).toEqual(["waiting"]);
    await tab.wake();
    expect(server.asked).toEqual(["send hi", "send hi"]);
    expect(server.messages.size).toBe(1);
    expect(tab.told()).toEqual(["waiting", "sent"]);
  });

  it("follows the one before it in its conversation, and no other", async () => {
    server.fails = [UNREACHABLE];
    const tab = await new Tab().open();
    await tab.write({ content: "one" });
    await tab.write({ content: "two", whenBusy: "queue" });
    await tab.write({ content: "elsewhere", conversationId: "d" });
    expect(contents()).toEqual(["elsewhere"]);
    expect(tab.items.map(({ state }) => state)).toEqual(["waiting", "waiting"]);
    await tab.wake();
    expect(contents()).toEqual(["elsewhere", "one", "two"]);
  });

  it("follows the one before it even if the clock was set back meanwhile", async () => {
    server.fails = [UNREACHABLE];
    const tab = await new Tab().open();
    await tab.write({ content: "one", whenBusy: "queue" });
    clock = () => -1000;
    await tab.write({ content: "two", whenBusy: "queue" });
    await tab.write({ content: "three", whenBusy: "queue" });
    await tab.wake();
    expect(contents()).toEqual(["one", "two", "three"]);
  });

  it("is not taken for sent because the browser can't read what it stored", async () => {
    disk.isUnreadable = true;
    const tab = await new Tab().open();
    const entry = await tab.write({ content: "hi" });
    expect(tab.events).toEqual([{ type: "sent", entry, outcome: { turnId: `took ${entry.id}` } }]);
  });

  it("is tried ever more seldom, at once when asked for, and when the server says", async () => {
    server.fails = [UNREACHABLE, UNREACHABLE, refused(429, "RATE_LIMITED", 20_000), refused(503, "SHUTTING_DOWN")];
    const tab = await new Tab().open();
    await tab.write({ content: "hi" });
    const waited = [tab.pauses.at(-1)!.ms];
    for (let attempt = 0; attempt < 3; attempt++) {
      tab.outbox.retry();
      await quiet();
      waited.push(tab.pauses.at(-1)!.ms);
    }
    expect(waited).toEqual([1000, 2000, 20_000, 8000]);
    await tab.wake();
    expect(contents()).toEqual(["hi"]);
  });

  it.each([
    [409, "PATH_CHANGED"],
    [404, "CONVERSATION_NOT_FOUND"],
    [402, "BUDGET_EXCEEDED"],
    [400, "MESSAGE_TOO_LONG"],
    [413, "PAYLOAD_TOO_LARGE"],
    [422, "INVALID_REQUEST"],
  ])("that is refused for good comes back: %i %s", async (status, code) => {
    const error = refused(status, code);
    server.fails = [error];
    const tab = await new Tab().open();
    let isStillStored = false;
    tab.outbox.on(({ entry }) => (isStillStored = disk.entries.has(entry.id)));
    const entry = await tab.write({ content: "hi" });
    expect(tab.events).toEqual([{ type: "refused", entry, error }]);
    expect(isStillStored).toBe(true); // whoever gives the text back does so first
    expect(disk.entries.size).toBe(0);
    expect(tab.pauses).toEqual([]);
  });

  it("can be taken back until it is sent", async () => {
    server.fails = [UNREACHABLE];
    const tab = await new Tab().open();
    const entry = await tab.write({ content: "hi" });
    await tab.outbox.withdraw(entry.id);
    await tab.wake();
    expect(tab.events.at(-1)).toEqual({ type: "withdrawn", entry });
    expect([disk.entries.size, server.messages.size, tab.items.length]).toEqual([0, 0, 0]);
  });

  it("that the browser can't store is sent all the same, and says so", async () => {
    disk.isFull = true;
    server.fails = [UNREACHABLE];
    const tab = await new Tab().open();
    await tab.write({ content: "hi" });
    expect(tab.items).toMatchObject([{ state: "waiting", lasts: false }]);
    await tab.wake();
    expect(contents()).toEqual(["hi"]);
  });

  it("that the browser can't store still says so after its user has signed in again", async () => {
    disk.isFull = true;
    server.fails = [refused(401, "UNAUTHENTICATED"), UNREACHABLE];
    const tab = await new Tab().open();
    await tab.write({ content: "hi" });
    await tab.open();
    expect(tab.items).toMatchObject([{ state: "waiting", lasts: false }]);
  });
});

describe("an entry of somebody else", () => {
  it.each([
    ["bob", "http://h/"],
    ["alice", "http://h/other/"],
  ])("is neither sent nor shown, and stays: %s at %s", async (userId, address) => {
    server.fails = [UNREACHABLE];
    const alice = await new Tab().open();
    await alice.write({ content: "hi" });
    alice.crash();
    const other = await new Tab(userId, address).open();
    expect([other.items.length, server.messages.size, disk.entries.size]).toEqual([0, 0, 1]);
    await other.outbox.discard();
    expect(disk.entries.size).toBe(1);
    await new Tab().open();
    expect(contents()).toEqual(["hi"]);
  });

  it("waits where the server no longer knows who we are", async () => {
    server.fails = [refused(401, "UNAUTHENTICATED")];
    const tab = await new Tab().open();
    await tab.write({ content: "hi" });
    expect([tab.pauses.length, disk.entries.size]).toEqual([0, 1]);
    await tab.open();
    expect(contents()).toEqual(["hi"]);
  });
});

describe("another server at the same address", () => {
  const tabAt = (installation: string) => new Tab("alice", "http://h/", installation).open();

  it.each(["send", "upload", "create"])("gets nothing, also while a tab waits for its own: %s", async (first) => {
    const files = [{ key: "a", fileName: "a", mediaType: "text/plain", size: 1, kept: null, source: new Blob(["a"]) }];
    server.fails = [UNREACHABLE];
    const tab = await tabAt("A");
    await tab.write({ content: "hi", ...(first === "upload" && { files }), ...(first === "create" && { conversationId: null }) });
    expect(server.asked).toHaveLength(1);
    server.id = "B";
    server.asked = [];
    await tab.wake();
    const other = await tabAt("B");
    expect([server.asked, other.items]).toEqual([[], []]);
    expect(tab.items).toMatchObject([{ state: "waiting" }]);
    server.id = "A"; // it is back
    await tab.wake();
    expect(contents()).toEqual(["hi"]);
  });

  it("gets no decision, either", async () => {
    const tab = await tabAt("A");
    server.id = "B";
    void tab.outbox.deliver({ kind: "answer", conversationId: "c", turnId: "t", requestId: "r", body: { action: "allow" } });
    await quiet();
    expect([server.asked, tab.items.length]).toEqual([[], 1]);
  });

  it("gets an entry of an older front end only if its user says so", async () => {
    server.fails = [UNREACHABLE];
    const before = await new Tab().open();
    await before.write({ content: "hi" });
    before.crash();
    const tab = await tabAt("A");
    expect([tab.items, contents()]).toEqual([[], []]);
    expect(await tab.outbox.ofUnknownServer()).toMatchObject([{ content: "hi" }]);
    expect(await tab.outbox.unsent()).toHaveLength(1); // signing out asks about it
    await tab.outbox.settleUnknown(true);
    await quiet();
    expect([contents(), disk.entries.size, await tab.outbox.ofUnknownServer()]).toEqual([["hi"], 0, []]);
  });

  it("leaves such an entry to its user, who can take it back", async () => {
    server.fails = [UNREACHABLE];
    const before = await new Tab().open();
    await before.write({ content: "hi" });
    before.crash();
    const tab = await tabAt("A");
    await tab.outbox.settleUnknown(false);
    expect(tab.events).toMatchObject([{ type: "withdrawn", entry: { content: "hi" } }]);
    expect([contents(), disk.entries.size]).toEqual([[], 0]);
  });
});

describe("two tabs", () => {
  it.each([
    ["sent", [], { outcome: { turnId: expect.any(String) } }],
    ["refused", [refused(402, "BUDGET_EXCEEDED")], { error: { status: 402, code: "BUDGET_EXCEEDED" }, isElsewhere: true }],
    ["withdrawn", [UNREACHABLE], { isElsewhere: true }],
  ] as const)("both know what became of an entry: %s", async (became, then, told) => {
    server.fails = [UNREACHABLE, UNREACHABLE, ...then];
    const [writer, helper] = [await new Tab().open(), await new Tab().open()];
    let ended: unknown = null;
    writer.outbox
      .deliver({ kind: "message", conversationId: "c", agentId: "g", content: "hi", files: [] })
      .then((it) => (ended = it), (error: unknown) => (ended = error));
    await quiet();
    const { id } = helper.items[0]!.entry;
    await helper.wake();
    if (became === "withdrawn") await helper.outbox.withdraw(id);
    await quiet();
    expect(writer.events.at(-1)).toMatchObject({ type: became, entry: { id, content: "hi" }, ...told });
    expect(helper.events.at(-1)).not.toHaveProperty("isElsewhere"); // only one of them returns the text
    expect([writer.items, helper.items, disk.entries.size]).toEqual([[], [], 0]);
    expect(became === "refused" ? ended instanceof ApiError : ended).toBe(became !== "withdrawn");
  });

  it.each([
    ["sent", []],
    ["refused", [refused(402, "BUDGET_EXCEEDED")]],
    ["withdrawn", [UNREACHABLE]],
  ] as const)("both know what became of an entry although one of them ended right then: %s", async (became, then) => {
    server.fails = [UNREACHABLE, UNREACHABLE, ...then];
    const [writer, helper] = [await new Tab().open(), await new Tab().open()];
    const { id } = await writer.write({ content: "hi" });
    disk.onRemoved = async () => helper.crash();
    await helper.wake();
    if (became === "withdrawn") void helper.outbox.withdraw(id);
    await quiet();
    await writer.wake();
    expect([helper.isCrashed, writer.told().filter((it) => it !== "waiting")]).toEqual([true, [became]]);
  });

  it.each([
    ["sent", []],
    ["refused", [refused(402, "BUDGET_EXCEEDED")]],
  ] as const)("don't take an entry in again that is about to leave the store: %s", async (became, then) => {
    server.fails = [UNREACHABLE, UNREACHABLE, ...then];
    const [writer, helper] = [await new Tab().open(), await new Tab().open()];
    await writer.write({ content: "hi" });
    const { remove } = disk;
    disk.remove = async (id) => {
      for (const tab of tabs) await tab.outbox.reload();
      await remove.call(disk, id);
    };
    await helper.wake();
    await writer.wake();
    expect(tabs.map((it) => it.told().filter((type) => type !== "waiting"))).toEqual([[became], [became]]);
    expect([writer.items, helper.items, disk.entries.size, server.asked.length]).toEqual([[], [], 0, 3]);
  });

  it("both know in which conversation a first message is", async () => {
    server.fails = [UNREACHABLE, UNREACHABLE];
    const [writer, helper] = [await new Tab().open(), await new Tab().open()];
    await writer.write({ content: "hi", conversationId: null });
    await helper.wake();
    expect(writer.events.at(-1)).toMatchObject({ type: "sent", entry: { conversationId: "c1" } });
  });

  it("send an entry once, and both know", async () => {
    server.fails = [UNREACHABLE, UNREACHABLE];
    const [one, two] = [await new Tab().open(), await new Tab().open()];
    await one.write({ content: "hi" });
    expect(two.items).toMatchObject([{ state: "waiting" }]);
    await Promise.all([one.wake(), two.wake()]);
    expect(server.asked).toEqual(["send hi", "send hi", "send hi"]);
    expect([one, two].map((it) => it.events.at(-1)!.type)).toEqual(["sent", "sent"]);
    expect([one.items, two.items, disk.entries.size]).toEqual([[], [], 0]);
  });

  it("go on where the other one has stopped", async () => {
    const files = [{ key: "a", fileName: "a", mediaType: "text/plain", size: 1, kept: null, source: new Blob(["a"]) }];
    server.fails = [UNREACHABLE, UNREACHABLE, undefined, UNREACHABLE];
    const [one, two] = [await new Tab().open(), await new Tab().open()];
    await one.write({ content: "look", files });
    await one.wake();
    one.crash();
    await two.wake();
    expect([server.uploads, contents()]).toEqual([["a"], ["look"]]);
  });

  it("leave each other alone as long as one of them sends, and help when it is gone", async () => {
    const two = await new Tab().open();
    const one = await new Tab().open();
    server.fails = [UNREACHABLE];
    const entry = one.outbox.prepare({ kind: "message", conversationId: "c", agentId: null, content: "hi", files: [] });
    await disk.put(entry);
    two.hear({ type: "stored" });
    one.crash();
    await quiet();
    expect(two.items).toEqual([]);
    await two.wake();
    await two.wake();
    expect(contents()).toEqual(["hi"]);
  });
});

describe("a first message", () => {
  it("creates its conversation once, whichever response is lost", async () => {
    server.loses = [UNREACHABLE];
    const tab = await new Tab().open();
    await tab.write({ content: "hi", conversationId: null });
    expect(tab.told()).toEqual(["waiting"]);
    tab.crash();
    const next = await new Tab().open();
    expect(server.asked).toEqual(["create g", "create g", "send hi"]);
    expect(server.conversations.size).toBe(1);
    expect(next.told()).toEqual(["created", "sent"]);
    expect([...server.messages.values()]).toMatchObject([{ conversationId: "c1" }]);
  });

  it("goes on in that conversation if it could not be sent at once", async () => {
    server.fails = [undefined, UNREACHABLE];
    const tab = await new Tab().open();
    await tab.write({ content: "hi", conversationId: null });
    expect([...disk.entries.values()].map(laneOf)).toEqual(["conversation.c1"]);
    await tab.wake();
    expect(server.asked).toEqual(["create g", "send hi", "send hi"]);
    expect(tab.told()).toEqual(["created", "waiting", "sent"]);
  });
});

describe("a message with files", () => {
  const file = (fileName: string): OutgoingFile => {
    return { key: fileName, fileName, mediaType: "text/plain", size: 1, kept: null, source: new Blob([fileName]) };
  };

  it("uploads each once, also after a crash between two", async () => {
    server.fails = [undefined, UNREACHABLE];
    const tab = await new Tab().open();
    await tab.write({ content: "look", files: [file("a"), file("b")] });
    tab.crash();
    await new Tab().open();
    expect(server.uploads).toEqual(["a", "b"]);
    expect([...server.messages.values()]).toMatchObject([{ files: [{ kept: { fileId: "f1" } }, { kept: { fileId: "f2" } }] }]);
  });

  it("goes nowhere if it is taken back during an upload", async () => {
    let arrive = () => {};
    server.beforeUpload = new Promise((resolve) => (arrive = resolve));
    const tab = await new Tab().open();
    const entry = await tab.write({ content: "look", conversationId: null, files: [file("a")] });
    expect(tab.items.map(canWithdraw)).toEqual([true]);
    await tab.outbox.withdraw(entry.id);
    arrive();
    await quiet();
    expect(server.asked).toEqual(["upload a"]);
    expect([disk.entries.size, tab.told()]).toEqual([0, ["withdrawn"]]);
  });

  it("uploads one again that the server has forgotten, if the browser still has it", async () => {
    const gone = new ApiError(404, "FILE_NOT_FOUND", "", { fileId: "f1" });
    server.fails = [undefined, gone];
    const tab = await new Tab().open();
    await tab.write({ content: "look", files: [file("a")] });
    expect(server.asked).toEqual(["upload a", "send look", "upload a", "send look"]);
    server.fails = [gone];
    const kept = { fileId: "f1", fileName: "a", mediaType: "text/plain", size: 1 };
    await tab.write({ content: "again", files: [{ ...file("a"), kept, source: null }] });
    expect(tab.told()).toEqual(["sent", "refused"]);
  });
});

it("sends decisions in the same way", async () => {
  server.fails = [UNREACHABLE];
  const tab = await new Tab().open();
  const body = { action: "allow" } as const;
  await tab.outbox.add(tab.outbox.prepare({ kind: "answer", conversationId: "c", turnId: "t", requestId: "r1", body }));
  await tab.write({ content: "does not wait for it" });
  expect(contents()).toEqual(["does not wait for it"]);
  tab.crash();
  await new Tab().open();
  expect(contents()).toEqual(["does not wait for it", "r1"]);
});

it("deletes what one user has not sent, and nothing else", async () => {
  server.fails = [UNREACHABLE, UNREACHABLE];
  const bob = await new Tab("bob").open();
  await bob.write({ content: "mine" });
  bob.crash();
  const alice = await new Tab().open();
  await alice.write({ content: "hi" });
  await alice.outbox.discard();
  expect([...disk.entries.values()].map(({ account }) => account.userId)).toEqual(["bob"]);
});

describe("a failure", () => {
  const of = (status: number, code: string, retryAfterMs?: number) => verdictOn(refused(status, code, retryAfterMs), 1).kind;

  it("is final only if the server itself says something that lasts", () => {
    expect(of(503, "STORAGE_UNAVAILABLE")).toBe("again");
    expect(of(500, "INTERNAL_ERROR")).toBe("again");
    expect(of(404, "INTERNAL_ERROR")).toBe("again"); // a proxy's page
    expect(of(413, "INTERNAL_ERROR")).toBe("final"); // a proxy's limit
    expect(of(409, "CONFLICT", 1000)).toBe("again"); // other requests changed the conversation at the same time
    expect(of(409, "GATEWAY_NOT_CONFIGURED")).toBe("final");
    expect(of(503, "GATEWAY_NOT_CONFIGURED")).toBe("final"); // from a server before 0.2
    expect(of(401, "UNAUTHENTICATED")).toBe("signed-out");
    expect(of(403, "FORBIDDEN")).toBe("final");
  });

  it("is followed by pauses of at most a minute", () => {
    expect(verdictOn(UNREACHABLE, 100)).toEqual({ kind: "again", afterMs: 60_000 });
  });
});
