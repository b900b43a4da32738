import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { type ConversationView, type MessageView } from "../../packages/client/src/schema";
import { socket } from "../../packages/client/src/socket";
import { type OutgoingMessage } from "../../packages/client/src/outbox/entry";
import { outbox, unsent } from "../../src/state/outbox";
import { tipOf } from "../../packages/client/src/thread/reduce";
import { Thread } from "../../packages/client/src/thread/thread";
import { answer } from "../draw";
import { delivered } from "../outgoing";
import { recording } from "../../packages/client/tests/recordings";

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
  sessionId: string | undefined;
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
    const { sessionId } = this;
    return Response.json({ id: "c", title: "Title", activeTurnId: null, summary: null, messages, nextCursor, sessionId });
  };

  private page(query: URLSearchParams): { items: MessageView[]; nextCursor: string | null } {
    const afterSeq = Number(query.get("afterSeq") ?? 0);
    const beforeSeq = Number(query.get("beforeSeq") ?? 1e9);
    const found = this.path.filter((it) => it.seq > afterSeq && it.seq < beforeSeq);
    if (query.get("order") === "desc") found.reverse();
    return { items: found.slice(0, 50), nextCursor: found.length > 50 ? "more" : null };
  }
}

let server: Server;
let thread: Thread;

beforeEach(() => {
  server = new Server();
  answer.mockImplementation(server.respond);
  thread = new Thread("c");
});
afterEach(() => thread.leave());

const state = () => thread.state.get();
const ids = () => state().messages.map((it) => it.id);

async function opened(...path: string[]): Promise<MessageView[]> {
  server.path = chain(...path);
  await thread.join();
  return server.path;
}

describe("every change names the end of the path that is shown", () => {
  it.each([
    ["saying something", () => delivered(thread.send("hi")), { call: "messages", body: { content: "hi", tip: "4" } }],
    ["editing", () => delivered(thread.send("hi", { edited: state().messages[2]! })), { call: "messages", body: { content: "hi", tip: "4", parentId: "2" } }],
    ["editing the first", () => delivered(thread.send("hi", { edited: state().messages[0]! })), { call: "messages", body: { content: "hi", tip: "4", parentId: null } }],
    ["regenerating", () => thread.regenerate(state().messages[1]!), { call: "regenerate", body: { messageId: "2", tip: "4" } }],
    ["choosing", () => thread.choose("5", state().messages[2]!), { call: "path", body: { messageId: "5", tip: "4" } }],
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
    await delivered(thread.send("hi"));
    expect(server.asked[0]!.body).toEqual({ content: "hi", tip: null });
  });
});

it("sends again, under the same key, what met a server that is being replaced", async () => {
  await opened("1", "2");
  server.refuse = { status: 503, code: "SHUTTING_DOWN" };
  await thread.send("hi");
  await vi.waitFor(() => expect(unsent.get()[0]?.state).toBe("waiting"));
  expect(server.asked).toHaveLength(1);
  server.refuse = null;
  outbox.retry();
  await vi.waitFor(() => expect(unsent.get()).toEqual([]));
  expect(server.asked).toHaveLength(2);
  expect(state().problem).toBeNull();
});

it("shows the path that it missed when one asks for it", async () => {
  await opened("1", "2", "3", "4");
  server.path = chain("1", "2", "5b", "6b");
  server.refuse = { status: 409, code: "PATH_CHANGED" };
  await delivered(thread.send("hi"));
  await thread.showPath();
  expect(ids()).toEqual(["1", "2", "5b", "6b"]);
  expect(state().problem).toBeNull();
});

describe("a branch", () => {
  it("is shown below what it shares with the path", async () => {
    const path = await opened(...numbers(1, 60));
    server.branches["61b"] = chain(...numbers(1, 20), "61b", "62b");
    await thread.choose("61b", path[20]!);
    expect(ids().slice(-3)).toEqual(["20", "61b", "62b"]);
    expect(tipOf(state())).toBe("62b");
    expect(state().hasNewer).toBe(false);
  });

  it("that is long is shown from where it begins", async () => {
    await opened(...numbers(1, 60));
    const from = state().messages.find((it) => it.id === "21")!;
    server.branches["61b"] = chain(...numbers(1, 20), ...numbers(61, 200, "b"));
    await thread.choose("61b", from);
    expect(ids().slice(0, 11)).toEqual([...numbers(11, 20), "61b"]);
    expect(state().hasNewer).toBe(true);
    expect(tipOf(state())).toBe("200b");
    await thread.readNewer();
    expect(ids().at(-1)).toBe("160b");
  });

  it("on which a message was found is shown with that message", async () => {
    await opened(...numbers(1, 60));
    server.branches["70b"] = chain(...numbers(1, 20), ...numbers(61, 200, "b"));
    await thread.showBranch("70b", 70);
    expect(ids()).toContain("70b");
    expect(state().choosing).toBe(false);
  });
});

describe("an older part", () => {
  it("stands above the newer one, which is read again without it", async () => {
    await opened(...numbers(1, 60));
    await thread.readOlder();
    expect(ids()).toEqual(numbers(1, 60));
    await thread.refresh();
    expect(ids()).toEqual(numbers(1, 60));
  });

  it("of another path is not put above this one", async () => {
    await opened(...numbers(1, 60));
    server.path = chain(...numbers(1, 9, "b"));
    await thread.readOlder();
    expect(ids()).toEqual(numbers(11, 60));
    expect(state().problem?.code).toBe("PATH_CHANGED");
  });
});

it("takes nothing from a reading that is older than what one has said since", async () => {
  await opened("1", "2");
  let late = (_: Response) => {};
  answer.mockImplementationOnce(() => new Promise((resolve) => (late = resolve)));
  const reading = thread.refresh();
  const old = await server.respond(new URL("http://h/api/conversations/c"), {});
  await delivered(thread.send("hi"));
  late(old);
  await reading;
  expect(ids()).toEqual(["1", "2", "u", "a"]);
});

it("takes nothing from a reading that another has overtaken", async () => {
  await opened("1", "2");
  let late = (_: Response) => {};
  answer.mockImplementationOnce(() => new Promise((resolve) => (late = resolve)));
  const reading = thread.refresh();
  const old = await server.respond(new URL("http://h/api/conversations/c"), {});
  server.path = chain("1", "2", "3", "4");
  await thread.refresh();
  late(old);
  await reading;
  expect(ids()).toEqual(["1", "2", "3", "4"]);
});

it("goes on at the end where the agent has a conversation already", async () => {
  server.path = chain("1", "2");
  const message = { kind: "message", conversationId: "c", agentId: "g", content: "hi", files: [] } as const;
  const first = outbox.prepare(message) as OutgoingMessage;
  thread.begin({ id: "c", title: "Title", messageCount: 2 } as ConversationView, first);
  await thread.join();
  expect(ids()).toEqual(["1", "2"]);
  server.path = chain("1", "2", "3", "4");
  await outbox.add(first);
  await vi.waitFor(() => expect(ids()).toEqual(["1", "2", "3", "4"]));
  expect(server.asked).toEqual([{ call: "messages", body: { content: "hi" } }]);
});

it("looks again when one comes back", async () => {
  await opened("1", "2");
  server.path = chain("1", "3b");
  window.dispatchEvent(new Event("focus"));
  await vi.waitFor(() => expect(ids()).toEqual(["1", "3b"]));
});

it("follows what another tab has chosen, and reads nothing where it shows that already", async () => {
  const subscribe = vi.spyOn(socket, "subscribe").mockReturnValue(() => undefined);
  server.sessionId = "s";
  await opened("1", "2");
  const told = subscribe.mock.lastCall![1];
  server.path = chain("1", "3b");
  const asked = answer.mock.calls.length;
  told({ type: "moved", tip: "2" });
  expect(answer.mock.calls.length).toBe(asked);
  told({ type: "moved", tip: "3b" });
  expect(answer.mock.calls.length).toBe(asked + 1);
  await vi.waitFor(() => expect(ids()).toEqual(["1", "3b"]));
  subscribe.mockRestore();
});
