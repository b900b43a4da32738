import { expect, it } from "vitest";

import { type TurnView } from "../src/api/schema";
import { type TurnEvent } from "../src/turn/events";
import { foldAll } from "../src/turn/fold";
import { type Part } from "../src/turn/parts";
import { timelineOf } from "../src/turn/timeline";
import { begun, recording } from "./recordings";

const at = (seq: number, ms: number, body: object) => ({ turn_id: "t", seq, at: 1000 + ms, ...body }) as TurnEvent;

it("shows model calls and tools side by side", () => {
  const { spans, duration } = timelineOf({} as TurnView, [
    at(1, 0, { type: "turn_start" }),
    at(2, 5, { type: "iteration_start", iteration: 1 }),
    at(3, 100, { type: "usage" }),
    at(4, 101, { type: "tool_call", tool_call_id: "a", tool_name: "add" }),
    at(5, 101, { type: "tool_call", tool_call_id: "b", tool_name: "mail" }),
    at(6, 300, { type: "tool_result", tool_call_id: "b", status: "timeout" }),
    at(7, 200, { type: "tool_result", tool_call_id: "a", status: "ok" }),
    at(8, 310, { type: "iteration_start", iteration: 2 }),
    at(9, 400, { type: "error" }),
  ], []);
  expect(duration).toBe(400);
  expect(spans.map(({ kind, title, from, to, ok }) => [kind, title, from, to, ok])).toEqual([
    ["model", "1", 5, 100, true],
    ["tool", "add", 101, 200, true],
    ["tool", "mail", 101, 300, false],
    ["model", "2", 310, 400, false],
  ]);
});

const EVENTS = [
  at(1, 0, { type: "turn_start", model: "m" }),
  at(2, 0, { type: "iteration_start", iteration: 1 }),
  at(3, 60, { type: "text", text: "Wait." }),
  at(4, 100, { type: "usage", input_tokens: 1, output_tokens: 1 }),
  at(5, 100, { type: "tool_call", tool_call_id: "a", tool_name: "add" }),
  at(6, 100, { type: "tool_call", tool_call_id: "b", tool_name: "mail" }),
  at(7, 150, { type: "retrieval", query: "q", hits: [], tool_call_id: "a" }),
  at(8, 200, { type: "tool_result", tool_call_id: "b", status: "timeout", duration_ms: 100 }),
  at(9, 300, { type: "tool_result", tool_call_id: "a", status: "ok", duration_ms: 200 }),
  at(10, 300, { type: "iteration_start", iteration: 2 }),
  at(11, 350, { type: "thought", text: "Hm." }),
];

function told(ending: TurnEvent): [TurnView, TurnEvent[], readonly Part[]] {
  const events = [...EVENTS, ending];
  const { message } = foldAll(begun(recording("plain text")), events);
  const time = (ms: number) => new Date(1000 + ms).toISOString();
  const turn = { status: message.status, startedAt: time(0), endedAt: time(400) } as TurnView;
  return [turn, events, message.parts];
}

it.each([
  ["completed", at(12, 400, { type: "done", status: "COMPLETED" })],
  ["failed", at(12, 400, { type: "error", code: "X", message: "" })],
])("tells the same from the parts when the log is gone: %s", (_, ending) => {
  const [turn, events, parts] = told(ending);
  const whole = timelineOf(turn, events, parts);
  expect(whole.spans).toHaveLength(5);
  expect(whole.spans.at(-1)!.ok).toBe(ending.type === "done");
  const replayed = [events[0]!, ending].map((it) => ({ ...it, replayed: true }));
  expect(timelineOf(turn, replayed, parts)).toEqual(whole);
});

it("has nothing to show of nothing", () => {
  const [turn] = told(at(12, 400, { type: "done", status: "COMPLETED" }));
  expect(timelineOf(turn, [], [])).toEqual({ spans: [], duration: 400 });
});
