import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { ClientTools } from "../src/client-tools";
import { FrontEnd } from "../src/front-end";
import { MemoryStore } from "../src/outbox/memory-store";
import { type OtherTabs } from "../src/outbox/ports";
import { type Thread } from "../src/thread/thread";
import { recording } from "./recordings";

const HEAD = { turn_id: "t", at: 1 };
const EVENTS = [
  { ...HEAD, seq: 1, type: "turn_start", conversation_id: "c", user_message_id: "u", message_id: "a", model: null },
  { ...HEAD, seq: 2, type: "iteration_start", iteration: 1 },
  { ...HEAD, seq: 3, type: "tool_call", tool_call_id: "call", tool_name: "color", server: "client", arguments: { of: "sky" } },
  { ...HEAD, seq: 4, type: "approval_request", request_id: "r", kind: "client_tool", message: "color", expires_at: 2, tool_call_id: "call" },
];

/** A server whose turn waits for the client's tool. */
let isOpen: boolean;
let answers: unknown[];
/** What tabs share. */
let store: MemoryStore;
let locks: Map<string, Promise<unknown>>;
let opened: { frontEnd: FrontEnd; thread: Thread }[];

async function respond(url: URL, { method, body }: { method: string; body: unknown }): Promise<Response> {
  const path = url.pathname;
  if (path.endsWith("/approvals/r") && method === "POST") {
    answers.push(JSON.parse(body as string));
    isOpen = false;
    return Response.json({ id: "t" });
  }
  if (path.endsWith("/api/approvals")) return Response.json({ items: isOpen ? [{ requestId: "r", turnId: "t" }] : [] });
  if (path.endsWith("/t/events")) return new Response(EVENTS.map((it) => `data: ${JSON.stringify(it)}\n\n`).join("") + ": stays open");
  if (path.endsWith("/api/me")) return Response.json({ id: "alice" });
  if (path.endsWith("/conversations/c")) {
    const reply = { ...recording("plain text").message, id: "a", turnId: "t", parts: [], status: "STREAMING" };
    return Response.json({ id: "c", title: "T", activeTurnId: "t", summary: null, messages: [reply], nextCursor: null });
  }
  return Response.json({ items: [], nextCursor: null });
}

/** The conversation in one more tab. */
async function open(): Promise<FrontEnd & { tools: ClientTools }> {
  const tabs: OtherTabs = {
    alone: <T>(name: string, work: () => Promise<T>) => {
      const done = (locks.get(name) ?? Promise.resolve()).then(work);
      locks.set(name, done);
      return done;
    },
    tell: () => {},
    listen: () => {},
  };
  // A stream that ends is opened again, after a while.
  const tools = new ClientTools();
  const platform = { store, tabs, pause: () => new Promise<void>(() => {}) };
  const frontEnd = new FrontEnd({ baseUrl: "http://h", fetch: respond, platform, tools });
  await frontEnd.start();
  const thread = frontEnd.open("c");
  opened.push({ frontEnd, thread });
  void thread.join();
  return Object.assign(frontEnd, { tools });
}

const color = (run: (input: Record<string, unknown>) => unknown) => ({ name: "color", description: "A color.", parameters: {}, run });

beforeEach(() => {
  [isOpen, answers, store, locks, opened] = [true, [], new MemoryStore(), new Map(), []];
});
afterEach(() => {
  for (const { frontEnd, thread } of opened) {
    thread.leave();
    frontEnd.stop();
  }
});

it("runs a call once, in one of the tabs, and sends what it returns", async () => {
  const run = vi.fn(async ({ of }: Record<string, unknown>) => ({ of, color: "blue" }));
  for (const frontEnd of [await open(), await open()]) frontEnd.tools.add(color(run));
  await vi.waitFor(() => expect(answers).toEqual([{ action: "result", content: { of: "sky", color: "blue" } }]));
  await locks.get("tool.r");
  expect(run).toHaveBeenCalledOnce();
  expect(answers).toHaveLength(1);
});

it("sends why a call failed", async () => {
  (await open()).tools.add(
    color(() => {
      throw new Error("It is night.");
    }),
  );
  await vi.waitFor(() => expect(answers).toEqual([{ action: "result", error: "It is night." }]));
});

it("does not run a call again whose result waits since before a reload", async () => {
  const run = vi.fn();
  const account = { server: "http://h/", userId: "alice" };
  const body = { action: "result" as const, content: "blue" };
  await store.put({ kind: "answer", id: "k", account, createdAt: 1, conversationId: "c", turnId: "t", requestId: "r", body });
  (await open()).tools.add(color(run));
  await vi.waitFor(() => expect(answers).toEqual([body]));
  await vi.waitFor(() => expect(opened[0]!.thread.state.get().live?.message.parts).toHaveLength(1));
  await locks.get("tool.r");
  expect(run).not.toHaveBeenCalled();
});

it("leaves the calls of others to them", async () => {
  const run = vi.fn();
  (await open()).tools.add({ ...color(run), name: "shade" });
  await vi.waitFor(() => expect(opened[0]!.thread.state.get().live?.message.parts).toHaveLength(1));
  expect(run).not.toHaveBeenCalled();
  expect(isOpen).toBe(true);
});

it("offers its tools with every message", async () => {
  const frontEnd = await open();
  const forget = frontEnd.tools.add(color(() => "blue"));
  const written = { kind: "message" as const, conversationId: "c", agentId: null, content: "hi", files: [] };
  expect(frontEnd.outbox.prepare(written).tools).toEqual([{ name: "color", description: "A color.", parameters: {} }]);
  forget();
  expect(frontEnd.outbox.prepare(written).tools).toBeUndefined();
});
