import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { ApiClient } from "../../src/api-client";
import { Outbox } from "../../src/outbox/outbox";
import { type EntryStore } from "../../src/outbox/ports";
import { serverTransport } from "../../src/outbox/server-transport";
import { type ConversationView, type MessageView } from "../../src/schema";
import { EMPTY_THREAD, tipOf } from "../../src/thread/state";
import { Thread } from "../../src/thread/thread";
import { UserEvents, type UserEvent } from "../../src/user-events";
import { recording } from "../recordings";

/** A path of messages, numbered; those of another branch carry a letter. */
function chain(...ids: string[]): MessageView[] {
  const { message } = recording("plain text");
  return ids.map((id, index) => ({
    ...message,
    id,
    seq: Number.parseInt(id, 10),
    parentId: ids[index - 1] ?? null,
    turnId: null,
    role: index % 2 ? "assistant" : "user",
  }));
}

const numbers = (from: number, to: number, letter = "") =>
  Array.from({ length: to - from + 1 }, (_, index) => `${from + index}${letter}`);

/** A server with one conversation. */
class Server {
  path: MessageView[] = [];
  asked: { call: string; body: unknown }[] = [];
  refuse: { status: number; code: string } | null = null;
  branches: Record<string, MessageView[]> = {};

  respond = async (url: URL, { method, body }: RequestInit): Promise<Response> => {
    const call = url.pathname.split("/").at(-1)!;
    if (method === "POST") {
      const said = JSON.parse(body as string) as { messageId?: string };
      this.asked.push({ call, body: said });
      if (this.refuse) return Response.json({ error: { ...this.refuse, message: "no" } }, { status: this.refuse.status });
      if (call === "path") this.path = this.branches[said.messageId!]!;
      return Response.json({ turnId: "t", userMessageId: "u", assistantMessageId: "a" });
    }
    if (call === "messages") return Response.json(this.page(url.searchParams));
    const messages = this.path.slice(-50);
    const nextCursor = this.path.length > 50 ? "older" : null;
    return Response.json({ id: "c", title: "Title", activeTurnId: null, summary: null, messages, nextCursor });
  };

  private page(query: URLSearchParams): { items: MessageView[]; nextCursor: string | null } {
    const afterSeq = Number(query.get("afterSeq") ?? 0);
    const beforeSeq = Number(query.get("beforeSeq") ?? 1e9);
    const found = this.path.filter((it) => it.seq > afterSeq && it.seq < beforeSeq);
    if (query.get("order") === "desc") found.reverse();
    return { items: found.slice(0, 50), nextCursor: found.length > 50 ? "more" : null };
  }
}

const noStore: EntryStore = { all: async () => [], get: async () => undefined, put: async () => false, remove: async () => {} };
const ask = vi.fn<(url: URL, options: RequestInit) => Promise<Response>>();

/** What this device has, by path. */
const copied = new Map<string, unknown>();
const copies = {
  keep: (path: string, view: unknown) => void copied.set(path, view),
  read: async <T>(path: string) => copied.get(path) as T | undefined,
  drop: (path: string) => void copied.delete(path),
};

let server: Server;
let outbox: Outbox;
let thread: Thread;
/** Tells the thread that it may have missed something. */
let look: () => void;
/** Reports a change as the server does. */
let report: (event: UserEvent) => void;

beforeEach(async () => {
  server = new Server();
  ask.mockImplementation(server.respond);
  vi.stubGlobal("fetch", ask);
  const api = new ApiClient({ baseUrl: () => "http://h/" });
  const events = new UserEvents(api, (_, __, listener) => {
    report = listener;
  });
  events.start("alice");
  outbox = new Outbox({ store: noStore, transport: serverTransport(api) });
  await outbox.start({ server: "http://h/", userId: "alice" });
  thread = new Thread("c", {
    api,
    events,
    outbox,
    copies,
    onReturn: (listener) => {
      look = listener;
    },
  });
});
afterEach(() => {
  thread.leave();
  outbox.stop();
  copied.clear();
  vi.unstubAllGlobals();
});

const unsent = () => outbox.items.get();

/** Waits until the server has taken or refused what the outbox was given. */
async function delivered(given: Promise<boolean>): Promise<void> {
  expect(await given).toBe(true);
  await vi.waitFor(() => expect(unsent()).toEqual([]));
}

const state = () => thread.state.get();
const ids = () => state().messages.map((it) => it.id);

async function opened(...path: string[]): Promise<MessageView[]> {
  server.path = chain(...path);
  await thread.join();
  return server.path;
}

describe("every change names the end of the path that is shown", () => {
  it.each([
    ["sending", () => delivered(thread.sending.send("hi")), { call: "messages", body: { content: "hi", tip: "4" } }],
    ["editing", () => delivered(thread.sending.send("hi", { edited: state().messages[2]! })), { call: "messages", body: { content: "hi", tip: "4", parentId: "2" } }],
    ["editing the first", () => delivered(thread.sending.send("hi", { edited: state().messages[0]! })), { call: "messages", body: { content: "hi", tip: "4", parentId: null } }],
    ["regenerating", () => thread.branches.regenerate(state().messages[1]!), { call: "regenerate", body: { messageId: "2", tip: "4" } }],
    ["choosing", () => thread.branches.choose("5", state().messages[2]!), { call: "path", body: { messageId: "5", tip: "4" } }],
  ])("%s", async (_, change, asked) => {
    await opened("1", "2", "3", "4");
    server.refuse = { status: 409, code: "PATH_CHANGED" };
    await change();
    expect(server.asked).toEqual([asked]);
    expect(ids()).toEqual(["1", "2", "3", "4"]);
    expect(state().problem?.code).toBe("PATH_CHANGED");
    expect(state().choosing || state().sending).toBe(false);
  });

  it("also in an empty conversation", async () => {
    await opened();
    await delivered(thread.sending.send("hi"));
    expect(server.asked[0]!.body).toEqual({ content: "hi", tip: null });
  });
});

it("sends again, under the same key, what met a server that is being replaced", async () => {
  await opened("1", "2");
  server.refuse = { status: 503, code: "SHUTTING_DOWN" };
  await thread.sending.send("hi");
  await vi.waitFor(() => expect(unsent()[0]?.state).toBe("waiting"));
  expect(server.asked).toHaveLength(1);
  server.refuse = null;
  outbox.retry();
  await vi.waitFor(() => expect(unsent()).toEqual([]));
  expect(server.asked).toHaveLength(2);
  expect(state().problem).toBeNull();
});

it("shows the path that it missed when the user asks for it", async () => {
  await opened("1", "2", "3", "4");
  server.path = chain("1", "2", "5b", "6b");
  server.refuse = { status: 409, code: "PATH_CHANGED" };
  await delivered(thread.sending.send("hi"));
  await thread.branches.showPath();
  expect(ids()).toEqual(["1", "2", "5b", "6b"]);
  expect(state().problem).toBeNull();
});

describe("a branch", () => {
  it("is shown below what it shares with the path", async () => {
    const path = await opened(...numbers(1, 60));
    server.branches["61b"] = chain(...numbers(1, 20), "61b", "62b");
    await thread.branches.choose("61b", path[20]!);
    expect(ids().slice(-3)).toEqual(["20", "61b", "62b"]);
    expect(tipOf(state())).toBe("62b");
    expect(state().hasNewer).toBe(false);
  });

  it("that is long is shown from where it begins", async () => {
    await opened(...numbers(1, 60));
    const from = state().messages.find((it) => it.id === "21")!;
    server.branches["61b"] = chain(...numbers(1, 20), ...numbers(61, 200, "b"));
    await thread.branches.choose("61b", from);
    expect(ids().slice(0, 11)).toEqual([...numbers(11, 20), "61b"]);
    expect(state().hasNewer).toBe(true);
    expect(tipOf(state())).toBe("200b");
    await thread.reading.readNewer();
    expect(ids().at(-1)).toBe("160b");
  });

  it("on which a message was found is shown with that message", async () => {
    await opened(...numbers(1, 60));
    server.branches["70b"] = chain(...numbers(1, 20), ...numbers(61, 200, "b"));
    await thread.branches.showBranch("70b", 70);
    expect(ids()).toContain("70b");
    expect(state().choosing).toBe(false);
  });
});

describe("an older part", () => {
  it("is kept above the newer one when that is read again", async () => {
    await opened(...numbers(1, 60));
    await thread.reading.readOlder();
    expect(ids()).toEqual(numbers(1, 60));
    await thread.reading.refresh();
    expect(ids()).toEqual(numbers(1, 60));
  });

  it("of another path is not put above this one", async () => {
    await opened(...numbers(1, 60));
    server.path = chain(...numbers(1, 9, "b"));
    await thread.reading.readOlder();
    expect(ids()).toEqual(numbers(11, 60));
    expect(state().problem?.code).toBe("PATH_CHANGED");
  });
});

it("ignores a response that is older than what the user has sent since", async () => {
  await opened("1", "2");
  let late = (_: Response) => {};
  ask.mockImplementationOnce(() => new Promise((resolve) => (late = resolve)));
  const reading = thread.reading.refresh();
  const old = await server.respond(new URL("http://h/api/conversations/c"), {});
  await delivered(thread.sending.send("hi"));
  late(old);
  await reading;
  expect(ids()).toEqual(["1", "2", "u", "a"]);
});

it("ignores a response that a later one has overtaken", async () => {
  await opened("1", "2");
  let late = (_: Response) => {};
  ask.mockImplementationOnce(() => new Promise((resolve) => (late = resolve)));
  const reading = thread.reading.refresh();
  const old = await server.respond(new URL("http://h/api/conversations/c"), {});
  server.path = chain("1", "2", "3", "4");
  await thread.reading.refresh();
  late(old);
  await reading;
  expect(ids()).toEqual(["1", "2", "3", "4"]);
});

it("goes on at the end where the agent has a conversation already", async () => {
  server.path = chain("1", "2");
  const first = outbox.prepare({ kind: "message", conversationId: "c", agentId: "g", content: "hi", files: [] });
  thread.begin({ id: "c", title: "Title", messageCount: 2 } as ConversationView, first);
  await thread.join();
  expect(ids()).toEqual(["1", "2"]);
  server.path = chain("1", "2", "3", "4");
  await outbox.add(first);
  await vi.waitFor(() => expect(ids()).toEqual(["1", "2", "3", "4"]));
  expect(server.asked).toEqual([{ call: "messages", body: { content: "hi" } }]);
});

it("looks again when it may have missed something", async () => {
  await opened("1", "2");
  server.path = chain("1", "3b");
  look();
  await vi.waitFor(() => expect(ids()).toEqual(["1", "3b"]));
});

it("follows what another client has chosen or begun here, and nothing else", async () => {
  await opened("1", "2");
  server.path = chain("1", "3b");
  const asked = ask.mock.calls.length;
  report({ id: "1", type: "conversation_changed", conversationId: "another" });
  report({ id: "2", type: "conversation_renamed", conversationId: "c" });
  expect(ask.mock.calls.length).toBe(asked);
  report({ id: "3", type: "conversation_changed", conversationId: "c" });
  await vi.waitFor(() => expect(ids()).toEqual(["1", "3b"]));
  server.path = chain("1", "3b", "4b");
  report({ id: "4", type: "turn_started", conversationId: "c", turnId: "t" });
  await vi.waitFor(() => expect(ids()).toEqual(["1", "3b", "4b"]));
});

it("asks the user who reads an older part before it shows what another client has chosen", async () => {
  await opened(...numbers(1, 90));
  await thread.reading.showAt(10);
  const shown = ids();
  report({ id: "1", type: "conversation_changed", conversationId: "c" });
  await thread.reading.refresh();
  expect(state().problem).toBeNull();
  server.path = chain(...numbers(1, 60), ...numbers(61, 70, "b"));
  report({ id: "2", type: "conversation_changed", conversationId: "c" });
  await vi.waitFor(() => expect(state().problem?.code).toBe("PATH_CHANGED"));
  expect(ids()).toEqual(shown);
});

describe("a copy on this device", () => {
  const away = async (): Promise<Response> => {
    throw new TypeError("offline");
  };

  it("is shown while the server is away, without the turn that ran then, and what the server says replaces it", async () => {
    await opened("1", "2");
    copied.set("/api/conversations/c", { ...(copied.get("/api/conversations/c") as object), activeTurnId: "t" });
    thread.leave();
    thread.state.set(EMPTY_THREAD);
    ask.mockImplementation(away);
    await thread.join();
    expect([ids(), state().connection, state().live]).toEqual([["1", "2"], "lost", null]);
    server.path = chain("1", "2", "3");
    ask.mockImplementation(server.respond);
    await vi.waitFor(() => expect([ids(), state().connection]).toEqual([["1", "2", "3"], "good"]), { timeout: 30_000 });
  });

  it("replaces nothing that is shown already", async () => {
    await opened("1", "2", "3");
    copied.set("/api/conversations/c", { ...(copied.get("/api/conversations/c") as object), messages: chain("1") });
    ask.mockImplementation(away);
    look();
    await vi.waitFor(() => expect(state().connection).toBe("lost"));
    expect(ids()).toEqual(["1", "2", "3"]);
  });

  it("is dropped when the server no longer has the conversation", async () => {
    await opened("1", "2");
    ask.mockImplementation(async () => Response.json({ error: { code: "CONVERSATION_NOT_FOUND", message: "" } }, { status: 404 }));
    look();
    await vi.waitFor(() => expect(copied.size).toBe(0));
  });
});
