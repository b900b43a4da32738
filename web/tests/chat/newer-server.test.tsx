/** A page that was open while its server was updated: what it doesn't know is skipped, and breaks nothing. */

import { EMPTY_THREAD, fold, foldAll, reduce, type Message, type Part, type Thread, type TurnEvent } from "@threadkeep/client";
import { beforeAll, describe, expect, it } from "vitest";

import { RECORDINGS, begun, recording } from "../../packages/client/tests/recordings";
import { loadRequests } from "../../src/chat/requests/lazy-request";
import { ThreadMessage } from "../../src/chat/thread-message";
import { timelineOf } from "../../src/turn/timeline";
import { loadChunk } from "../../src/ui/use-chunk";
import { draw } from "../draw";

beforeAll(async () => void (await loadChunk(loadRequests)));

/** The same log with something new after every event, numbered without a gap. */
function mixed(events: readonly TurnEvent[]): TurnEvent[] {
  const bodies = events.flatMap((event) => [event, { turn_id: event.turn_id, at: event.at, type: "hologram", shape: {} }]);
  return bodies.map((event, index) => ({ ...event, seq: index + 1 }) as TurnEvent);
}

describe("an event of a type that this page has never seen", () => {
  it.each(RECORDINGS)("changes nothing but the number: $name", (it) => {
    const { message, lastSeq } = foldAll(begun(it), mixed(it.events));
    expect(message).toEqual(it.message);
    expect(lastSeq).toBe(2 * it.events.length);
  });

  it("doesn't interrupt a text that is being written", () => {
    const some = recording("plain text");
    const growing = foldAll(begun(some), some.events.slice(0, some.events.findIndex(({ type }) => type === "text") + 1));
    const next = { turn_id: "t", seq: growing.lastSeq + 1, at: 0, type: "hologram" } as unknown as TurnEvent;
    expect(fold(growing, next)).toEqual({ ...growing, lastSeq: growing.lastSeq + 1 });
  });

  it.each(RECORDINGS)("has no place in the timeline: $name", (it) => {
    expect(timelineOf(mixed(it.events)).spans).toEqual(timelineOf(it.events).spans);
  });

  it("reaches the conversation like the others", () => {
    const some = recording("plain text");
    const live = begun(some);
    const state = { ...EMPTY_THREAD, messages: [live.message], live };
    const { live: after } = reduce(state, { type: "events", turnId: some.events[0]!.turn_id, events: mixed(some.events) });
    expect(after!.message.parts).toEqual(some.message.parts);
  });
});

describe("a message with what this page has never seen", () => {
  const shown = (parts: object[], more: object = {}) => {
    const message = { ...recording("plain text").message, ...more, parts: parts as Part[] } as Message;
    const ignored = () => {};
    return draw(
      <ThreadMessage
        message={message}
        live={null}
        isLast
        isWanted={false}
        isEdited={false}
        running={false}
        busy={false}
        thread={{} as Thread}
        onChoose={ignored}
        onEdit={ignored}
        onDetails={ignored}
      />,
    );
  };
  const text = (it: string) => ({ type: "text", text: it, iteration: 1 });
  const call = { type: "tool_call", toolCallId: "t", toolName: "order", server: "shop", arguments: {}, result: null, durationMs: 1, iteration: 1 };

  it.each<[string, object[], object?]>([
    ["part", [{ type: "hologram", iteration: 1 }]],
    ["status of a call", [{ ...call, status: "teleported" }, { ...call, toolCallId: "u", status: "teleported" }]],
    ["decision on a request", [{ ...call, status: "ok", approval: { requestId: "r", message: "", expiresAt: "2027-01-01", action: "delegate", at: "2026-01-01" } }]],
    ["kind of question", [{ type: "question", requestId: "q", message: "?", expiresAt: "2027-01-01", schema: { type: "hologram" }, iteration: 1 }]],
    ["notice", [{ type: "notice", code: "HOLOGRAM", message: "Something new.", iteration: 1 }]],
    ["status", [], { status: "TELEPORTED" }],
    ["error", [], { status: "FAILED", error: { code: "HOLOGRAM", message: "Something new.", retryable: false } }],
  ])("shows the rest of it: %s", (_, parts, more) => {
    const drawn = shown([text("Before."), ...parts, text("After.")], more);
    expect(drawn.text).toContain("Before.");
    expect(drawn.text).toContain("After.");
  });

  it("shows a new notice and a new error in their own words", () => {
    const error = { code: "HOLOGRAM", message: "Something went new ways.", retryable: false };
    const drawn = shown([{ type: "notice", code: "HOLOGRAM", message: "Something new.", iteration: 1 }], { status: "FAILED", error });
    expect(drawn.text).toContain("Something new.");
    expect(drawn.text).toContain("Something went new ways.");
  });
});

