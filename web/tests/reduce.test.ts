import { describe, expect, it } from "vitest";

import { type ConversationDetailView } from "../src/api/schema";
import { entriesOf } from "../src/thread/entries";
import { EMPTY, isRunning, reduce, type ThreadAction, type ThreadState } from "../src/thread/reduce";
import { type TurnEvent } from "../src/turn/events";
import { contentOf, type Message } from "../src/turn/parts";

const said = (text: string): Message["parts"] => [{ type: "text", text, iteration: 0 }];

function message(seq: number, role: "user" | "assistant", more: Partial<Message> = {}): Message {
  return {
    id: `m${seq}`,
    conversationId: "c",
    seq,
    parentId: role === "assistant" ? `m${seq - 1}` : null,
    turnId: `t${Math.ceil(seq / 2)}`,
    runId: null,
    role,
    parts: said(`text ${seq}`),
    status: "COMPLETED",
    tokenCount: null,
    usage: null,
    model: null,
    archived: false,
    createdAt: "2026-01-01T00:00:00.000Z",
    completedAt: null,
    ...more,
  };
}

function detail(activeTurnId: string | null): ConversationDetailView {
  const at = "2026-01-01T00:00:00.000Z";
  return {
    id: "c",
    agentId: "a",
    domainId: "a",
    userId: "u",
    title: "Title",
    status: "active",
    isMain: false,
    metadata: {},
    activeTurnId,
    messageCount: 2,
    startedAt: at,
    createdAt: at,
    updatedAt: at,
    lastMessageAt: at,
    messages: [],
    nextCursor: null,
    summary: null,
  };
}

const turn = { turnId: "t2", userMessageId: "m3", assistantMessageId: "m4" };
const happened = (seq: number, body: object): TurnEvent => ({ turn_id: "t2", seq, at: 1000 + seq, ...body }) as TurnEvent;
const started = happened(1, { type: "turn_start", conversation_id: "c", user_message_id: "m3", message_id: "m4", model: "m" });

function after(...actions: ThreadAction[]): ThreadState {
  const read: ThreadAction = {
    type: "read",
    conversation: detail(null),
    messages: [message(1, "user"), message(2, "assistant")],
    hasOlder: true,
  };
  return [{ type: "opening" } as const, read, ...actions].reduce(reduce, EMPTY);
}

describe("a turn", () => {
  it("is shown from the click on", () => {
    const state = after({ type: "sending", content: "Hi" });
    expect(state.messages.map((it) => contentOf(it.parts))).toEqual(["text 1", "text 2", "Hi", ""]);
    expect(isRunning(state)).toBe(true);
  });

  it("takes its ids from the server, and its text from its events", () => {
    const state = after(
      { type: "sending", content: "Hi" },
      { type: "started", turn },
      { type: "events", turnId: "t2", events: [started, happened(2, { type: "text", text: "Hel" })] },
      { type: "events", turnId: "t2", events: [happened(2, { type: "text", text: "Hel" }), happened(3, { type: "text", text: "lo" })] },
    );
    expect(state.messages.map((it) => it.id)).toEqual(["m1", "m2", "m3", "m4"]);
    expect(contentOf(state.messages.at(-1)!.parts)).toBe("Hello");
    expect(state.messages.at(-1)!.status).toBe("STREAMING");
  });

  it("is not doubled when its messages are read while it is sent", () => {
    const state = after(
      { type: "sending", content: "Hi" },
      {
        type: "read",
        conversation: detail("t2"),
        messages: [message(3, "user", { parts: said("Hi") }), message(4, "assistant", { parts: [], status: "PENDING" })],
        hasOlder: true,
      },
      { type: "started", turn },
    );
    expect(state.messages.map((it) => it.id)).toEqual(["m1", "m2", "m3", "m4"]);
  });

  it("keeps what was folded when an older reading comes in", () => {
    const state = after(
      { type: "sending", content: "Hi" },
      { type: "started", turn },
      { type: "events", turnId: "t2", events: [started, happened(2, { type: "text", text: "Hello" })] },
      { type: "read", conversation: detail("t2"), messages: [message(4, "assistant", { parts: said("He"), status: "STREAMING" })], hasOlder: true },
    );
    expect(contentOf(state.messages.at(-1)!.parts)).toBe("Hello");
  });

  it("leaves nothing behind when the server refuses it", () => {
    const state = after({ type: "sending", content: "Hi" }, { type: "refused", problem: { code: "X", message: "no" } });
    expect(state.messages).toHaveLength(2);
    expect(isRunning(state)).toBe(false);
  });

  it("ends", () => {
    const state = after({ type: "sending", content: "Hi" }, { type: "started", turn }, { type: "ended", turnId: "t2" });
    expect(isRunning(state)).toBe(false);
    expect(state.conversation?.activeTurnId).toBeNull();
  });
});

it("opening a conversation in mid-stream follows its turn from the first event", () => {
  const reply = message(2, "assistant", { parts: said("partial"), status: "STREAMING" });
  const state = reduce(EMPTY, {
    type: "read",
    conversation: detail("t1"),
    messages: [message(1, "user"), reply],
    hasOlder: false,
  });
  expect(state.live?.message.turnId).toBe("t1");
  expect(state.live?.lastSeq).toBe(0);
  expect(contentOf(state.messages.at(-1)!.parts)).toBe("partial"); // shown until the events have caught up
});

it("regenerating makes a version of the same entry", () => {
  const state = after({ type: "regenerating" }, { type: "started", turn });
  const entries = entriesOf(state.messages);
  expect(entries).toHaveLength(2);
  expect(entries[1]!.versions.map((it) => it.status)).toEqual(["OVERWRITTEN", "PENDING"]);
});

it("older messages come before those that are known", () => {
  const state = after({ type: "readOlder", messages: [message(0, "assistant")], hasOlder: false });
  expect(state.messages.map((it) => it.seq)).toEqual([0, 1, 2]);
  expect(state.hasOlder).toBe(false);
});

describe("an older part", () => {
  const far = (seq: number) => message(seq, "user");
  const jumped: ThreadAction = { type: "jumped", messages: [far(-51), far(-50)], hasOlder: true, hasNewer: true };
  const seqs = (state: ThreadState) => state.messages.map((it) => it.seq);

  it("stands alone: neither what is read at the end nor the turn that runs is put below it", () => {
    const state = after(
      { type: "sending", content: "Hi" },
      { type: "started", turn },
      jumped,
      { type: "events", turnId: "t2", events: [started, happened(2, { type: "text", text: "Hello" })] },
      { type: "read", conversation: detail("t2"), messages: [message(4, "assistant")], hasOlder: true },
    );
    expect(seqs(state)).toEqual([-51, -50]);
    expect(isRunning(state)).toBe(true);
  });

  it("is read on to the end, where the turn that runs goes on", () => {
    const state = after(
      { type: "sending", content: "Hi" },
      { type: "started", turn },
      jumped,
      { type: "events", turnId: "t2", events: [started, happened(2, { type: "text", text: "Hello" })] },
      { type: "readNewer", messages: [far(-49)], hasNewer: true },
      { type: "readNewer", messages: [message(3, "user"), message(4, "assistant", { parts: [] })], hasNewer: false },
    );
    expect(seqs(state)).toEqual([-51, -50, -49, 3, 4]);
    expect(contentOf(state.messages.at(-1)!.parts)).toBe("Hello");
  });
});
