import { ClientTools, FrontEnd, MemoryStore, contentOf, type TurnEvent } from "@threadkeep/client";
import { StrictMode, act, useEffect, type ReactNode } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { click, draw, undraw } from "../../../tests/draw";
import { ThreadkeepProvider, useApprovals, useClientTool, useConversation, useConversations, useFrontEnd, type ConversationOptions } from "../src";

/** A server with one conversation, in which the test says what happens. */
class Server {
  asked: { path: string; body: Record<string, unknown> }[] = [];
  streams = new Map<string, ReadableStreamDefaultController<Uint8Array>>();
  activeTurnId: string | null = null;
  messages: object[] = [];
  approvals: object[] = [];
  refusal: { code: string; message: string } | null = null;
  isAway = false;
  isSignedIn = true;

  respond = async (url: URL, { method, body }: { method: string; body: unknown }): Promise<Response> => {
    const path = url.pathname.replace(/^\/api\//, "");
    if (this.isAway) throw new TypeError("Failed to fetch");
    if (!this.isSignedIn) return Response.json({ error: { code: "UNAUTHENTICATED", message: "Sign in first." } }, { status: 401 });
    if (method === "GET") return this.#read(path);
    const said = body ? (JSON.parse(body as string) as Record<string, unknown>) : {};
    this.asked.push({ path, body: said });
    if (this.refusal) return Response.json({ error: this.refusal }, { status: 422 });
    if (path === "agents/g/conversations") return Response.json(this.#conversation, { status: 201 });
    if (path === "conversations/c/messages") {
      this.activeTurnId = "t";
      const parts = [{ type: "text", text: said["content"], iteration: 0 }];
      this.messages = [
        { id: "u", turnId: "t", seq: 1, parentId: null, role: "user", parts, status: "COMPLETED" },
        { id: "a", turnId: "t", seq: 2, parentId: "u", role: "assistant", parts: [], status: "STREAMING" },
      ];
      return Response.json({ turnId: "t", userMessageId: "u", assistantMessageId: "a" }, { status: 202 });
    }
    return Response.json({});
  };

  tell(turnId: string, ...events: object[]): void {
    const text = events.map((it) => `data: ${JSON.stringify({ turn_id: turnId, at: 1, ...it })}\n\n`).join("");
    this.streams.get(turnId)!.enqueue(new TextEncoder().encode(text));
  }

  get #conversation() {
    return { id: "c", agentId: "g", title: "Tea", status: "active", activeTurnId: this.activeTurnId, messageCount: this.messages.length, updatedAt: "2026" };
  }

  #read(path: string): Response {
    const stream = /^(?:turns\/(\w+)|me)\/events$/.exec(path);
    if (stream) return new Response(new ReadableStream({ start: (it) => void this.streams.set(stream[1] ?? "me", it) }));
    if (path === "me") return Response.json({ id: "alice", role: "user" });
    if (path === "agents") return Response.json({ items: [{ id: "g", isDefault: true }], nextCursor: null });
    if (path === "approvals") return Response.json({ items: this.approvals });
    if (path === "conversations/c") return Response.json({ ...this.#conversation, summary: null, messages: this.messages, nextCursor: null });
    return Response.json({ items: [this.#conversation], nextCursor: null });
  }
}

let server: Server;
let frontEnd: FrontEnd;
const tools = new ClientTools();
/** What the hook under test returned last. */
let chat: ReturnType<typeof useConversation>;

beforeEach(() => {
  server = new Server();
  frontEnd = new FrontEnd({ baseUrl: "http://h", fetch: server.respond, tools });
});
afterEach(() => undraw());

const provided = (node: ReactNode) => (
  <StrictMode>
    <ThreadkeepProvider frontEnd={frontEnd}>{node}</ThreadkeepProvider>
  </StrictMode>
);
const settled = (check: () => void) => act(() => vi.waitFor(check));
const START = { seq: 1, type: "turn_start", conversation_id: "c", user_message_id: "u", message_id: "a", model: null };
const text = (seq: number, said: string) => ({ seq, type: "text", text: said }) satisfies Partial<TurnEvent>;

function Chat({ id, ...options }: { id: string | null } & ConversationOptions) {
  const shown = useConversation(id, options);
  useEffect(() => void (chat = shown), [shown]);
  return <p>{shown.messages.map(({ parts }) => contentOf(parts)).join("|")}</p>;
}

it("begins a conversation with its first message, and streams the reply", async () => {
  const onCreated = vi.fn();
  const drawn = draw(provided(<Chat id={null} onCreated={onCreated} />));
  expect(await act(() => chat.send("too early"))).toBe(false);
  await settled(() => expect(chat.isReady).toBe(true));
  await act(() => chat.send("hi"));
  await settled(() => expect(onCreated).toHaveBeenCalledExactlyOnceWith("c"));
  drawn.again(provided(<Chat id="c" onCreated={onCreated} />));
  await settled(() => expect(server.streams.has("t")).toBe(true));
  expect(chat.isRunning).toBe(true);
  server.tell("t", START, { seq: 2, type: "iteration_start", iteration: 1 }, text(3, "Hel"));
  await settled(() => expect(drawn.text).toBe("hi|Hel"));
  server.tell("t", text(4, "lo."));
  await settled(() => expect(drawn.text).toBe("hi|Hello."));
});

it("gives back a message that the server refuses", async () => {
  const onReturned = vi.fn();
  draw(provided(<Chat id={null} onReturned={onReturned} />));
  await settled(() => expect(chat.isReady).toBe(true));
  server.refusal = { code: "INVALID_REQUEST", message: "Too long." };
  await act(() => chat.send("a long story"));
  await settled(() => expect(chat.problem?.message).toBe("Too long."));
  expect(onReturned.mock.calls.map(([entry]) => entry.content)).toEqual(["a long story"]);
  expect(chat.isRunning).toBe(false);
  act(() => chat.dismiss());
  expect(chat.problem).toBeNull();
});

it("shows a first message that waits for the server, and takes it back", async () => {
  const onReturned = vi.fn();
  const drawn = draw(provided(<Chat id={null} onReturned={onReturned} />));
  await settled(() => expect(chat.isReady).toBe(true));
  server.isAway = true;
  await act(() => chat.send("hi"));
  await settled(() => expect(chat.connection).toBe("lost"));
  expect(drawn.text).toBe("hi|");
  expect(chat.isRunning).toBe(true);
  await act(() => chat.stop());
  expect(onReturned.mock.calls.map(([entry]) => entry.content)).toEqual(["hi"]);
  expect(drawn.text).toBe("");
  expect(chat.connection).toBe("good");
});

it("shows a first message of an earlier visit, and opens its conversation when it has been sent", async () => {
  const store = new MemoryStore();
  frontEnd = new FrontEnd({ baseUrl: "http://h", fetch: server.respond, platform: { store } });
  draw(provided(<Chat id={null} />));
  await settled(() => expect(chat.isReady).toBe(true));
  server.isAway = true;
  await act(() => chat.send("hi"));
  await settled(() => expect(chat.connection).toBe("lost"));
  undraw();

  frontEnd = new FrontEnd({ baseUrl: "http://h", fetch: server.respond, platform: { store } });
  const onCreated = vi.fn();
  const drawn = draw(provided(<Chat id={null} onCreated={onCreated} />));
  server.isAway = false;
  await settled(() => expect(onCreated).toHaveBeenCalledExactlyOnceWith("c"));
  drawn.again(provided(<Chat id="c" onCreated={onCreated} />));
  await settled(() => expect(drawn.text).toBe("hi|"));
});

it("says that nobody is signed in, until somebody is", async () => {
  server.isSignedIn = false;
  draw(provided(<Chat id={null} />));
  await settled(() => expect(chat.isSignedOut).toBe(true));
  expect(chat.problem).toEqual({ code: "UNAUTHENTICATED", message: "Sign in first." });
  expect(chat.isReady).toBe(false);
  server.isSignedIn = true;
  await act(() => frontEnd.start());
  expect(chat.isSignedOut).toBe(false);
  expect(chat.problem).toBeNull();
  expect(chat.isReady).toBe(true);
  server.isSignedIn = false; // the session has ended
  await act(() => chat.send("hi"));
  await settled(() => expect(chat.isSignedOut).toBe(true));
  expect(await act(() => chat.send("hi"))).toBe(false);
});

it("shows what a turn asks, and answers it", async () => {
  server.activeTurnId = "t";
  server.messages = [{ id: "a", turnId: "t", seq: 2, parentId: null, role: "assistant", parts: [], status: "STREAMING" }];
  draw(provided(<Chat id="c" />));
  await settled(() => expect(server.streams.has("t")).toBe(true));
  server.tell("t", START, { seq: 2, type: "approval_request", request_id: "r", kind: "question", message: "Which?", expires_at: 2 });
  await settled(() => expect(chat.requests.map(({ message }) => message)).toEqual(["Which?"]));
  expect(chat.isWaiting).toBe(true);
  await act(() => chat.decide("r", { action: "answer", content: "Blue" }));
  expect(server.asked.at(-1)).toEqual({ path: "turns/t/approvals/r", body: { action: "answer", content: "Blue" } });
});

it("lists conversations, and shows what happens elsewhere", async () => {
  function List() {
    const { conversations, isLoading } = useConversations();
    return isLoading ? "…" : conversations.map(({ title, activeTurnId }) => `${title} ${activeTurnId}`).join();
  }
  const drawn = draw(provided(<List />));
  await settled(() => expect(drawn.text).toBe("Tea null"));
  server.activeTurnId = "t";
  server.tell("me", { id: "1", type: "turn_started", conversationId: "c", turnId: "t" });
  await settled(() => expect(drawn.text).toBe("Tea t"));
});

it("lists what waits for the user, and answers it", async () => {
  function List() {
    const { approvals, answer } = useApprovals();
    return approvals.map((it) => (
      <button key={it.requestId} onClick={() => void answer(it, { action: "deny" })}>
        {it.message}
      </button>
    ));
  }
  server.approvals = [{ requestId: "r", turnId: "t", conversationId: "c", message: "Which?" }];
  const drawn = draw(provided(<List />));
  await settled(() => expect(drawn.text).toBe("Which?"));
  await settled(() => expect(frontEnd.isStarted.get()).toBe(true));
  server.approvals = [];
  await click(drawn.named("Which?"));
  expect(server.asked).toEqual([{ path: "turns/t/approvals/r", body: { action: "deny" } }]);
  await settled(() => expect(drawn.text).toBe(""));
});

it("offers a function of the page while its component is there", async () => {
  const tool = { name: "color", description: "A color.", parameters: {}, run: () => "blue" };
  function Tool() {
    useClientTool(tool);
    return null;
  }
  const drawn = draw(provided(<Tool />));
  expect(tools.offered.tools).toEqual([{ name: "color", description: "A color.", parameters: {} }]);
  drawn.again(provided(null));
  expect(tools.offered).toEqual({});
});

it("says what is missing", () => {
  function Lost() {
    useFrontEnd();
    return null;
  }
  vi.spyOn(console, "error").mockImplementation(() => {});
  expect(() => draw(<Lost />)).toThrow("ThreadkeepProvider");
  vi.restoreAllMocks();
});
