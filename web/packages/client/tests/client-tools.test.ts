import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Client } from "../src/client";
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
/** How the server fails, answer after answer, before it takes one. */
let failures: { status: number; code: string; message: string }[];
/** What tabs share. */
let store: MemoryStore;
let locks: Map<string, Promise<unknown>>;
let opened: { frontEnd: FrontEnd; thread: Thread }[];

async function respond(url: URL, { method, body }: { method: string; body: unknown }): Promise<Response> {
  const path = url.pathname;
  if (path.endsWith("/approvals/r") && method === "POST") {
    answers.push(JSON.parse(body as string));
    const failure = failures.shift();
    if (failure) return Response.json({ error: failure }, { status: failure.status });
    isOpen = false;
    return Response.json({ id: "t" });
  }
  if (path.endsWith("/api/approvals")) return Response.json({ items: isOpen ? [{ requestId: "r", turnId: "t", kind: "client_tool", toolName: "color" }] : [] });
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
      const done = (locks.get(name) ?? Promise.resolve()).catch(() => {}).then(work);
      locks.set(name, done);
      return done;
    },
    tell: () => {},
    listen: () => {},
  };
  // A stream that ends is opened again, after a while.
  const tools = new ClientTools();
  const platform = { store, tabs, pause: untilAborted };
  const frontEnd = new FrontEnd({ baseUrl: "http://h", fetch: respond, platform, tools });
  await frontEnd.start();
  const thread = frontEnd.open("c");
  opened.push({ frontEnd, thread });
  void thread.join();
  return Object.assign(frontEnd, { tools });
}

/** Waits, as before a retry that nothing hurries. */
const untilAborted = (_: number, signal?: AbortSignal) =>
  new Promise<void>((resolve) => signal?.addEventListener("abort", () => resolve()));

/** Lets the page look for calls again once it has done what it had to, as every change of a conversation does. */
async function lookAgain({ tools }: { tools: ClientTools }): Promise<void> {
  const settled = () => new Promise((resolve) => setTimeout(resolve, 20));
  await settled();
  tools.add({ name: "other", description: "", parameters: {} });
  await settled();
}

const NUL = { status: 422, code: "INVALID_REQUEST", message: "Text can't contain NUL characters." };
const TOO_LARGE = { status: 413, code: "PAYLOAD_TOO_LARGE", message: "A tool's result can have at most 9 bytes." };
const AWAY = { status: 503, code: "UNAVAILABLE", message: "Later." };
const BUSY = { status: 429, code: "RATE_LIMITED", message: "Too many." };
const RESULT = { action: "result", content: "blue" };
const refusal = ({ message }: { message: string }) => ({ action: "result", error: `The tool has run, but the server refused its result: ${message}` });

const color = (run: (input: Record<string, unknown>) => unknown) => ({ name: "color", description: "A color.", parameters: {}, run });

beforeEach(() => {
  [isOpen, answers, failures, store, locks, opened] = [true, [], [], new MemoryStore(), new Map(), []];
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

it.each([NUL, TOO_LARGE])("tells the turn why its result was refused, and runs the tool once: $status", async (failure) => {
  failures = [failure];
  const run = vi.fn(() => "blue");
  const frontEnd = await open();
  frontEnd.tools.add(color(run));
  await vi.waitFor(() => expect(answers).toEqual([RESULT, refusal(failure)]));
  await lookAgain(frontEnd);
  expect(run).toHaveBeenCalledOnce();
  expect(isOpen).toBe(false);
});

it("tells it once, also if that is refused", async () => {
  failures = [NUL, NUL, NUL];
  const run = vi.fn(() => "blue");
  const frontEnd = await open();
  frontEnd.tools.add(color(run));
  await vi.waitFor(() => expect(answers).toEqual([RESULT, refusal(NUL)]));
  await lookAgain(frontEnd);
  expect(run).toHaveBeenCalledOnce();
  expect(answers).toHaveLength(2);
});

it("repeats the same result while the server is away, and tells of a refusal after that", async () => {
  failures = [AWAY, BUSY, NUL, AWAY];
  const run = vi.fn(() => "blue");
  const frontEnd = await open();
  frontEnd.tools.add(color(run));
  await vi.waitFor(() => {
    frontEnd.outbox.retry();
    expect(isOpen).toBe(false);
  });
  expect(answers).toEqual([RESULT, RESULT, RESULT, refusal(NUL), refusal(NUL)]);
  expect(run).toHaveBeenCalledOnce();
});

it.each([404, 409, 410])("says nothing more if nobody waits for its result any longer: %i", async (status) => {
  failures = [{ status, code: "OVER", message: "Over." }];
  const run = vi.fn(() => "blue");
  const frontEnd = await open();
  frontEnd.tools.add(color(run));
  await vi.waitFor(() => expect(answers).toEqual([RESULT]));
  await lookAgain(frontEnd);
  expect(run).toHaveBeenCalledOnce();
  expect(answers).toHaveLength(1);
});

it("tells the turn of a refusal that comes after a reload", async () => {
  failures = [AWAY, NUL];
  const run = vi.fn(() => "blue");
  (await open()).tools.add(color(run));
  await vi.waitFor(() => expect(answers).toEqual([RESULT]));
  opened[0]!.frontEnd.stop();
  locks.clear();
  const reloaded = await open();
  reloaded.tools.add(color(run));
  await vi.waitFor(() => expect(answers).toEqual([RESULT, RESULT, refusal(NUL)]));
  await lookAgain(reloaded);
  expect(run).toHaveBeenCalledOnce();
});

const cycle: Record<string, unknown> = {};
cycle["self"] = cycle;
it.each([
  ["a BigInt", { count: 10n }, "JSON has no BigInt"],
  ["a cycle", cycle, expect.stringMatching(/circular|cyclic/)],
  ["a Map", new Map([["sky", "blue"]]), "JSON has no Map"],
  ["NaN", [1, NaN], "JSON has no NaN"],
  ["a function", () => "blue", "JSON has no Function"],
])("tells the turn that its result is not JSON: %s", async (_, returned, reason) => {
  const run = vi.fn(() => returned);
  const frontEnd = await open();
  frontEnd.tools.add(color(run));
  await vi.waitFor(() => expect(answers).toHaveLength(1));
  const [said, why] = (answers[0] as { error: string }).error.split(": ");
  expect(said).toBe("The tool has run, but its result can't be sent");
  expect(why).toEqual(reason);
  expect(why).not.toContain("\n");
  await lookAgain(frontEnd);
  expect(run).toHaveBeenCalledOnce();
});

it("sends a result as it was when the tool returned it, however late", async () => {
  failures = [AWAY];
  const returned = { color: "blue", at: new Date(0), nothing: undefined, all: [undefined, null] };
  const frontEnd = await open();
  frontEnd.tools.add(color(() => returned));
  await vi.waitFor(() => expect(answers).toHaveLength(1));
  returned.color = "red";
  await vi.waitFor(() => {
    frontEnd.outbox.retry();
    expect(isOpen).toBe(false);
  });
  const sent = { action: "result", content: { color: "blue", at: "1970-01-01T00:00:00.000Z", all: [null, null] } };
  expect(answers).toEqual([sent, sent]);
});

it("sends null for undefined, also where only its JSON is that", async () => {
  for (const returned of [undefined, { toJSON: () => undefined }]) {
    [isOpen, answers] = [true, []];
    (await open()).tools.add(color(() => returned));
    await vi.waitFor(() => expect(answers).toEqual([{ action: "result", content: null }]));
  }
});

it.each([["nothing", ""], ["what has no text", Object.create(null) as unknown]])("says that a call failed which throws %s", async (_, thrown) => {
  const frontEnd = await open();
  frontEnd.tools.add(
    color(() => {
      throw thrown;
    }),
  );
  await vi.waitFor(() => expect(answers).toEqual([{ action: "result", error: "The tool failed." }]));
});

it("tells the turn of a program why its result was refused", async () => {
  failures = [NUL];
  const run = vi.fn(() => "blue");
  const client = new Client({ baseUrl: "http://h", fetch: respond, pause: untilAborted });
  void client.reply("t", { tools: [color(run)] });
  await vi.waitFor(() => expect(answers).toEqual([RESULT, refusal(NUL)]));
  expect(run).toHaveBeenCalledOnce();
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
