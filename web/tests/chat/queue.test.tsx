import { isRunning, isWaiting, type Thread, type MessageView, type QueuedMessageView } from "@threadkeep/client";
import { act } from "react";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { recording } from "../../packages/client/tests/recordings";
import { QueuedMessages } from "../../src/chat/queued-messages";
import { openThread } from "../../src/state/front-end";
import { toasts } from "../../src/ui/toasts";
import { respond, click, draw, press, type } from "../draw";
import { delivered, outgoing } from "../outgoing";

/** A server with one conversation, in which a turn runs for as long as a test wants. */
class Server {
  messages: MessageView[] = [];
  activeTurnId: string | null = null;
  queued: QueuedMessageView[] = [];
  asked: { method: string; call: string; body: unknown }[] = [];
  streams = new Map<string, ReadableStreamDefaultController<Uint8Array>>();
  /** What becomes of the next message. */
  next: object = { queued: true, messageId: "q1" };
  refuse: { status: number; code: string } | null = null;
  #seqs = new Map<string, number>();

  begin(turnId: string): void {
    const { message } = recording("plain text");
    const parentId = this.messages.at(-1)?.id ?? null;
    const seq = this.messages.length + 1;
    const asked = { ...message, id: `u-${turnId}`, seq, parentId, turnId, role: "user" as const };
    const status = "PENDING" as const;
    const reply = { ...message, id: `a-${turnId}`, seq: seq + 1, parentId: asked.id, turnId, parts: [], status };
    this.messages = [...this.messages, asked, reply];
    this.activeTurnId = turnId;
  }

  happen(turnId: string, ...bodies: object[]): void {
    for (const body of bodies) {
      const seq = (this.#seqs.get(turnId) ?? 0) + 1;
      this.#seqs.set(turnId, seq);
      const data = JSON.stringify({ turn_id: turnId, seq, at: 1000 + seq, ...body });
      this.streams.get(turnId)!.enqueue(new TextEncoder().encode(`data: ${data}\n\n`));
    }
  }

  respond = async (url: URL, { method = "GET", body }: RequestInit): Promise<Response> => {
    const call = url.pathname.split("/api/").at(-1)!;
    if (call.endsWith("/events")) {
      const turnId = call.split("/")[1]!;
      return new Response(new ReadableStream({ start: (controller) => void this.streams.set(turnId, controller) }));
    }
    if (method !== "GET") {
      this.asked.push({ method, call, body: body ? JSON.parse(body as string) : null });
      if (this.refuse) return Response.json({ error: { code: this.refuse.code, message: "no" } }, { status: this.refuse.status });
      return method === "DELETE" ? new Response(null, { status: 204 }) : Response.json(this.next);
    }
    const { messages, activeTurnId, queued } = this;
    return Response.json({ id: "c", title: "Title", activeTurnId, queued, messages, nextCursor: null, summary: null });
  };
}

let server: Server;
let thread: Thread;
const state = () => thread.state.get();
const queue = () => state().queued.map((it) => `${it.steers ? "> " : ""}${it.content}`);
const waiting = (messageId: string, content: string, held = false): QueuedMessageView => ({ messageId, content, held, files: [], createdAt: "", model: null });

beforeEach(() => {
  server = new Server();
  respond.mockImplementation(server.respond);
  thread = openThread("c");
});
afterEach(() => thread.leave());

async function running(): Promise<void> {
  server.begin("t1");
  await thread.join();
  await vi.waitFor(() => expect(server.streams.has("t1")).toBe(true));
  server.happen("t1", { type: "turn_start", model: "m" });
  await vi.waitFor(() => expect(state().live?.lastSeq).toBe(1));
}

describe("what is sent while a turn runs", () => {
  it("is queued, shown at once, and named no place on the path", async () => {
    await running();
    const sent = thread.sending.send("Then this");
    expect(queue()).toEqual(["Then this"]);
    server.queued = [waiting("q1", "Then this")];
    await delivered(sent);
    expect(server.asked).toEqual([{ method: "POST", call: "conversations/c/messages", body: { content: "Then this", whenBusy: "queue" } }]);
    await vi.waitFor(() => expect(state().queued).toEqual([{ ...server.queued[0], steers: null }]));
    expect(state().messages).toHaveLength(2);
  });

  it("keeps its files, and shows them by what is known of them", async () => {
    await running();
    const notes = { fileId: "f1", fileName: "notes.md", mediaType: "text/markdown", size: 9 };
    server.queued = [{ ...waiting("q1", ""), files: [{ type: "file", ...notes, iteration: 0 }] }];
    await delivered(thread.sending.send("", { files: [outgoing(notes)] }));
    expect(server.asked.at(-1)!.body).toEqual({ content: "", files: ["f1"], whenBusy: "queue" });
    const drawn = draw(<QueuedMessages thread={thread} queued={state().queued} />);
    expect(drawn.find(".file-chip").textContent).toBe("Open notes.mdMD · 9 B");
    expect(drawn.place.querySelector(".bubble")).toBeNull();
  });

  it("has its turn when the one before has ended, which is followed", async () => {
    await running();
    server.queued = [waiting("q1", "Then this")];
    await delivered(thread.sending.send("Then this"));
    server.queued = [];
    server.begin("t2");
    server.happen("t1", { type: "done", status: "COMPLETED" });
    await vi.waitFor(() => expect(server.streams.has("t2")).toBe(true));
    server.happen("t2", { type: "turn_start", model: "m" }, { type: "text", text: "Gladly." });
    await vi.waitFor(() => expect(state().live?.message.parts).toMatchObject([{ text: "Gladly." }]));
    expect(queue()).toEqual([]);
    expect(state().messages.map((it) => it.id)).toEqual(["u-t1", "a-t1", "u-t2", "a-t2"]);
  });

  it("steers it, is shown until the turn has taken it in, and then in the reply", async () => {
    await running();
    server.next = { steered: true, turnId: "t1", messageId: "s1" };
    await delivered(thread.sending.send("No, that", { steers: true }));
    expect(server.asked.at(-1)!.body).toEqual({ content: "No, that", whenBusy: "steer" });
    await thread.reading.refresh();
    expect(queue()).toEqual(["> No, that"]);
    server.happen("t1", { type: "user_message", message_id: "s1", content: "No, that" });
    await vi.waitFor(() => expect(queue()).toEqual([]));
    expect(state().live!.message.parts).toMatchObject([{ type: "user_text", text: "No, that" }]);
  });

  it("stands in the queue when the turn that it was to steer ended first", async () => {
    await running();
    server.next = { steered: true, turnId: "t1", messageId: "s1" };
    await delivered(thread.sending.send("No, that", { steers: true }));
    server.activeTurnId = null;
    server.queued = [waiting("s1", "No, that", true)];
    server.happen("t1", { type: "error", code: "X", message: "no", retryable: false });
    await vi.waitFor(() => expect(state().queued).toEqual([{ ...server.queued[0], steers: null }]));
  });

  it("is a turn of its own where the one before had just ended", async () => {
    await running();
    server.next = { turnId: "t2", userMessageId: "u-t2", assistantMessageId: "a-t2" };
    const sent = thread.sending.send("Then this");
    server.begin("t2");
    await sent;
    await vi.waitFor(() => expect(server.streams.has("t2")).toBe(true));
    expect(queue()).toEqual([]);
  });

  it("leaves nothing behind when the server refuses it", async () => {
    await running();
    server.refuse = { status: 422, code: "MESSAGE_TOO_LONG" };
    await delivered(thread.sending.send("Then this"));
    expect(queue()).toEqual([]);
    expect(state().problem?.code).toBe("MESSAGE_TOO_LONG");
    expect(isRunning(state())).toBe(true);
  });
});

it("sends what was held first: the new message is queued behind it", async () => {
  server.queued = [waiting("q1", "Held", true)];
  await thread.join();
  server.next = { queued: true, messageId: "q2" };
  const sent = thread.sending.send("Go on");
  expect(queue()).toEqual(["Held", "Go on"]);
  server.begin("t2");
  server.queued = [waiting("q2", "Go on")];
  await sent;
  await vi.waitFor(() => expect(queue()).toEqual(["Go on"]));
  expect(state().live?.message.turnId).toBe("t2");
});

it("sends a held message now, and follows its turn", async () => {
  server.queued = [waiting("q1", "Held", true), waiting("q2", "Later", true)];
  await thread.join();
  server.next = { turnId: "t2", userMessageId: "q1", assistantMessageId: "a-t2" };
  server.begin("t2");
  server.queued = [waiting("q2", "Later")];
  await thread.queue.sendHeld("q1");
  expect(server.asked.at(-1)).toMatchObject({ method: "POST", call: "conversations/c/queued/q1/send" });
  await vi.waitFor(() => expect(queue()).toEqual(["Later"]));
  expect(state().live?.message.turnId).toBe("t2");
});

it("takes back what it showed as a turn where others were held before it", async () => {
  await thread.join();
  server.queued = [waiting("q2", "Go on")];
  server.begin("t2");
  server.next = { queued: true, messageId: "q2" };
  await thread.sending.send("Go on");
  await vi.waitFor(() => expect(state().messages.map((it) => it.id)).toEqual(["u-t2", "a-t2"]));
  expect(queue()).toEqual(["Go on"]);
  expect(state().sending).toBe(false);
});

describe("a turn that waits for its user", () => {
  const asked = { type: "approval_request", request_id: "r1", kind: "question", message: "Which?", expires_at: 2000 };

  it("is answered", async () => {
    await running();
    server.happen("t1", asked);
    await vi.waitFor(() => expect(isWaiting(state())).toBe(true));
    await thread.sending.decide("t1", "r1", { action: "answer", content: "Red" });
    expect(server.asked).toEqual([{ method: "POST", call: "turns/t1/approvals/r1", body: { action: "answer", content: "Red" } }]);
  });

  it("is ended by a message, whose own turn is followed to its end", async () => {
    await running();
    server.happen("t1", asked);
    await vi.waitFor(() => expect(isWaiting(state())).toBe(true));
    server.next = { turnId: "t2", userMessageId: "u-t2", assistantMessageId: "a-t2" };
    const sent = thread.sending.send("Never mind");
    server.begin("t2");
    await delivered(sent);
    expect(server.asked.at(-1)!.body).toEqual({ content: "Never mind", tip: "a-t1" });
    await vi.waitFor(() => expect(server.streams.has("t2")).toBe(true));
    const follow = server.streams.get("t2");
    server.happen("t1", { type: "done", status: "CANCELLED" });
    server.happen("t2", { type: "turn_start", model: "m" }, { type: "text", text: "All right." });
    await vi.waitFor(() => expect(state().live?.message.parts).toMatchObject([{ text: "All right." }]));
    await thread.reading.refresh();
    expect(server.streams.get("t2")).toBe(follow); // followed once
    server.activeTurnId = null;
    server.happen("t2", { type: "done", status: "COMPLETED" });
    await vi.waitFor(() => expect(isRunning(state())).toBe(false));
  });
});

describe("the queue", () => {
  const list = () => <QueuedMessages thread={thread} queued={state().queued} />;

  it("says what is held, and what joins the reply", async () => {
    server.queued = [waiting("q1", "One"), waiting("q2", "Two", true)];
    await thread.join();
    const drawn = draw(list());
    expect([...drawn.place.querySelectorAll(".state")].map((it) => it.textContent!.trim())).toEqual(["Queued", "On hold"]);
  });

  it("is edited and cleared before it is sent", async () => {
    server.queued = [waiting("q1", "One")];
    await thread.join();
    const drawn = draw(list());
    await click(drawn.named("Edit queued message"));
    const box = drawn.find<HTMLTextAreaElement>("textarea");
    await type(box, "Another one");
    server.queued = [waiting("q1", "Another one")];
    await press(box, "Enter");
    expect(server.asked).toEqual([{ method: "PATCH", call: "conversations/c/queued/q1", body: { content: "Another one" } }]);
    await act(async () => vi.waitFor(() => expect(queue()).toEqual(["Another one"])));
    drawn.again(list());
    server.queued = [];
    await click(drawn.named("Remove from queue"));
    expect(server.asked.at(-1)).toEqual({ method: "DELETE", call: "conversations/c/queued/q1", body: null });
    await act(async () => vi.waitFor(() => expect(queue()).toEqual([])));
  });

  it.each([
    ["MESSAGE_NOT_FOUND", 404, "This message was already sent."],
    ["AGENT_NOT_FOUND", 404, "This agent was deleted. You can read this conversation but not continue it."],
    ["TURN_IN_PROGRESS", 409, "An answer is already in progress. Wait for it or stop it."],
  ])("says why a held message is not sent: %s", async (code, status, told) => {
    server.queued = [waiting("q1", "One", true)];
    await thread.join();
    server.refuse = { status, code };
    await click(draw(list()).named("Send now"));
    expect(toasts.get().at(-1)?.text).toBe(told);
  });

  it("asks once, however often the button is clicked", async () => {
    server.queued = [waiting("q1", "One", true)];
    await thread.join();
    respond.mockImplementation((url, request) => (request.method === "POST" ? new Promise(() => {}) : server.respond(url, request)));
    const drawn = draw(list());
    await click(drawn.named("Send now"));
    await click(drawn.named("Send now"));
    expect(respond.mock.calls.filter(([, { method }]) => method === "POST")).toHaveLength(1);
  });

  it("keeps what was typed until the server has taken it", async () => {
    server.queued = [waiting("q1", "One")];
    await thread.join();
    const drawn = draw(list());
    await click(drawn.named("Edit queued message"));
    await type(drawn.find<HTMLTextAreaElement>("textarea"), "Another one");
    respond.mockRejectedValueOnce(new TypeError("away"));
    await press(drawn.find("textarea"), "Enter");
    expect(toasts.get().at(-1)?.text).toBe("Can’t reach the server.");
    expect(drawn.find<HTMLTextAreaElement>("textarea").value).toBe("Another one");
    await press(drawn.find("textarea"), "Enter");
    expect(server.asked).toMatchObject([{ method: "PATCH", body: { content: "Another one" } }]);
    expect(drawn.place.querySelector("textarea")).toBeNull();
  });

  it("is left unedited with Escape", async () => {
    server.queued = [waiting("q1", "One")];
    await thread.join();
    const drawn = draw(list());
    await click(drawn.named("Edit queued message"));
    await press(drawn.find("textarea"), "Escape");
    expect(drawn.find(".bubble").textContent).toBe("One");
    expect(server.asked).toEqual([]);
  });
});
