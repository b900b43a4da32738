import { describe, expect, it } from "vitest";

import { type ConversationDetailView } from "../../src/schema";
import { keyOf } from "../../src/thread/path";
import { reduce, type ThreadAction } from "../../src/thread/reduce";
import { EMPTY_THREAD, isRunning, tipOf, type ThreadState } from "../../src/thread/state";
import { type TurnEvent } from "../../src/turn/events";
import { contentOf, type Message } from "../../src/turn/parts";

const said = (text: string): Message["parts"] => [{ type: "text", text, iteration: 0 }];

function message(seq: number, role: "user" | "assistant", more: Partial<Message> = {}): Message {
  return {
    id: `m${seq}`,
    conversationId: "c",
    seq,
    parentId: seq === 1 ? null : `m${seq - 1}`,
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

function detail(activeTurnId: string | null, messages: Message[] = [], nextCursor: string | null = "older"): ConversationDetailView {
  const at = "2026-01-01T00:00:00.000Z";
  return {
    id: "c",
    agentId: "a",
    domainId: "a",
    userId: "u",
    title: "Title",
    status: "active",
    isMain: false,
  pinned: false,
    metadata: {},
    activeTurnId,
    messageCount: 2,
    startedAt: at,
    createdAt: at,
    updatedAt: at,
    lastMessageAt: at,
    messages: messages as ConversationDetailView["messages"],
    nextCursor,
    summary: null,
    queued: [],
  };
}

const turn = { turnId: "t2", userMessageId: "m3", assistantMessageId: "m4" };
const happened = (seq: number, body: object): TurnEvent => ({ turn_id: "t2", seq, at: 1000 + seq, ...body }) as TurnEvent;
const started = happened(1, { type: "turn_start", conversation_id: "c", user_message_id: "m3", message_id: "m4", model: "m" });

function after(...actions: ThreadAction[]): ThreadState {
  const read: ThreadAction = { type: "read", conversation: detail(null, [message(1, "user"), message(2, "assistant")]) };
  return [{ type: "opening" } as const, read, ...actions].reduce(reduce, EMPTY_THREAD);
}

describe("a turn", () => {
  it("is shown from the click on", () => {
    const state = after({ type: "sending", content: "Hi", edited: null });
    expect(state.messages.map((it) => contentOf(it.parts))).toEqual(["text 1", "text 2", "Hi", ""]);
    expect(isRunning(state)).toBe(true);
  });

  it("takes its ids from the server, and its text from its events", () => {
    const state = after(
      { type: "sending", content: "Hi", edited: null },
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
      { type: "sending", content: "Hi", edited: null },
      {
        type: "read",
        conversation: detail("t2", [message(3, "user", { parts: said("Hi") }), message(4, "assistant", { parts: [], status: "PENDING" })]),
      },
      { type: "started", turn },
    );
    expect(state.messages.map((it) => it.id)).toEqual(["m1", "m2", "m3", "m4"]);
  });

  it("keeps what was folded when an older reading comes in", () => {
    const state = after(
      { type: "sending", content: "Hi", edited: null },
      { type: "started", turn },
      { type: "events", turnId: "t2", events: [started, happened(2, { type: "text", text: "Hello" })] },
      { type: "read", conversation: detail("t2", [message(4, "assistant", { parts: said("He"), status: "STREAMING" })]) },
    );
    expect(contentOf(state.messages.at(-1)!.parts)).toBe("Hello");
  });

  it("leaves nothing behind when the server refuses it", () => {
    const state = after({ type: "sending", content: "Hi", edited: null }, { type: "refused", problem: { code: "X", message: "no" } });
    expect(state.messages).toHaveLength(2);
    expect(isRunning(state)).toBe(false);
  });

  it("ends", () => {
    const state = after({ type: "sending", content: "Hi", edited: null }, { type: "started", turn }, { type: "ended", turnId: "t2" });
    expect(isRunning(state)).toBe(false);
    expect(state.conversation?.activeTurnId).toBeNull();
  });
});

it("opening a conversation in mid-stream follows its turn from the first event", () => {
  const reply = message(2, "assistant", { parts: said("partial"), status: "STREAMING" });
  const state = reduce(EMPTY_THREAD, { type: "read", conversation: detail("t1", [message(1, "user"), reply], null) });
  expect(state.live?.message.turnId).toBe("t1");
  expect(state.live?.lastSeq).toBe(0);
  expect(contentOf(state.messages.at(-1)!.parts)).toBe("partial"); // shown until the events have caught up
});

describe("a branch", () => {
  const ids = (state: ThreadState) => state.messages.map((it) => it.id);
  const four = [message(1, "user"), message(2, "assistant"), message(3, "user"), message(4, "assistant")];
  const read: ThreadAction = { type: "read", conversation: detail(null, four, null) };
  const asked = { turnId: "t5", userMessageId: "m5", assistantMessageId: "m6" };
  const refused: ThreadAction = { type: "refused", problem: { code: "X", message: "no" } };

  it("begins where a reply is regenerated, as a version of the same entry", () => {
    const state = after(read, { type: "regenerating", replaced: four[1]! }, { type: "started", turn: asked });
    expect(ids(state)).toEqual(["m1", "m6"]);
    const [, fresh] = state.messages;
    expect(fresh).toMatchObject({ parentId: "m1", turnId: "t5", siblings: { ids: ["m2", "m6"], index: 1 } });
    expect(keyOf(fresh!)).toBe(keyOf(four[1]!));
    expect(state.live?.message.id).toBe("m6");
  });

  it("begins where a message is edited, with a new question and its reply", () => {
    const state = after(read, { type: "sending", content: "Else", edited: four[2]! }, { type: "started", turn: asked });
    expect(ids(state)).toEqual(["m1", "m2", "m5", "m6"]);
    expect(state.messages[2]).toMatchObject({ parentId: "m2", siblings: { ids: ["m3", "m5"], index: 1 } });
    expect(state.messages[3]).toMatchObject({ parentId: "m5" });
    expect(state.messages[3]!.siblings).toBeUndefined();
  });

  it("begins with the first message, too", () => {
    const state = after(read, { type: "sending", content: "Else", edited: four[0]! });
    expect(state.messages.map((it) => contentOf(it.parts))).toEqual(["Else", ""]);
    expect(state.messages[0]!.parentId).toBeNull();
  });

  it("that the server refuses hides nothing", () => {
    for (const begin of [
      { type: "sending", content: "Else", edited: four[0]! } as const,
      { type: "regenerating", replaced: four[1]! } as const,
    ]) {
      const state = after(read, begin, refused);
      expect(ids(state)).toEqual(["m1", "m2", "m3", "m4"]);
      expect(isRunning(state)).toBe(false);
    }
  });

  it("that is chosen stands below what it shares with the path before", () => {
    const other = [message(7, "user", { parentId: "m2" }), message(8, "assistant")];
    const conversation = detail(null, [...four.slice(0, 2), ...other], null);
    const chosen: ThreadAction = { type: "chosen", conversation, replaced: four[2]!, messages: other, hasNewer: false };
    const state = after(read, { type: "choosing" }, chosen, { type: "settled" });
    expect(ids(state)).toEqual(["m1", "m2", "m7", "m8"]);
    expect(tipOf(state)).toBe("m8");
  });

  it("that somebody else has chosen takes the place of what was shown", () => {
    const older: ThreadAction = { type: "readOlder", messages: [message(0, "assistant")], hasOlder: false };
    const other = [message(9, "user", { parentId: "m1" }), message(10, "assistant")];
    const followed = after(older, { type: "read", conversation: detail(null, other) });
    expect(ids(followed)).toEqual(["m0", "m1", "m9", "m10"]);
    expect(followed.hasOlder).toBe(false);
    const elsewhere = [message(9, "user", { parentId: "m-5" }), message(10, "assistant")];
    const jumped = after(older, { type: "read", conversation: detail(null, elsewhere) });
    expect(ids(jumped)).toEqual(["m9", "m10"]);
    expect(jumped.hasOlder).toBe(true);
  });

  it("is offered until it is shown", () => {
    const moved = { code: "PATH_CHANGED", message: "" };
    const state = after({ type: "refused", problem: moved });
    expect(state.problem).toEqual(moved);
    expect(reduce(state, read).problem).toBeNull();
  });
});

describe("the tip", () => {
  it("is the last message that the server knows", () => {
    expect(tipOf(EMPTY_THREAD)).toBeNull();
    expect(tipOf(after())).toBe("m2");
    expect(tipOf(after({ type: "sending", content: "Hi", edited: null }))).toBe("m2");
    expect(tipOf(after({ type: "sending", content: "Hi", edited: null }, { type: "started", turn }))).toBe("m4");
  });

  it("stays while the user reads an older part, whatever is read of the end", () => {
    const jumped: ThreadAction = { type: "jumped", messages: [message(-9, "user")], hasOlder: true, hasNewer: true };
    const state = after(jumped, { type: "read", conversation: detail(null, [message(7, "user")]) });
    expect(tipOf(state)).toBe("m2");
    expect(tipOf(reduce(state, { type: "read", conversation: detail(null, [message(7, "user")]), whole: true }))).toBe("m7");
  });
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
      { type: "sending", content: "Hi", edited: null },
      { type: "started", turn },
      jumped,
      { type: "events", turnId: "t2", events: [started, happened(2, { type: "text", text: "Hello" })] },
      { type: "read", conversation: detail("t2", [message(4, "assistant")]) },
    );
    expect(seqs(state)).toEqual([-51, -50]);
    expect(isRunning(state)).toBe(true);
  });

  it("is read on to the end, where the turn that runs goes on", () => {
    const state = after(
      { type: "sending", content: "Hi", edited: null },
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
