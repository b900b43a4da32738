import { foldAll, type TurnEvent } from "@threadkeep/client";
import { expect, it } from "vitest";

import { begun, RECORDINGS } from "../../packages/client/tests/recordings";
import { modelCallsOf } from "../../src/turn/model-calls";
import { crashIn, MOST_IDLE_MS, nextStop, playedAt, positionOf, replayOf, Rewind, stepAt, stopAt, stopsOf, timeAt } from "../../src/turn/replay";
import { timelineOf } from "../../src/turn/timeline";

const at = (seq: number, ms: number, body: object) => ({ turn_id: "t", seq, at: 1000 + ms, ...body }) as TurnEvent;

const TURN = [
  at(1, 0, { type: "turn_start" }),
  at(2, 0, { type: "iteration_start", iteration: 1 }),
  at(3, 200, { type: "tool_call", tool_call_id: "a", tool_name: "mail", arguments: {} }),
  at(4, 300, { type: "usage", input_tokens: 9, output_tokens: 2, cache_read_tokens: 4, estimated: false }),
  at(5, 10_300, { type: "tool_result", tool_call_id: "a", tool_name: "mail", status: "ok", duration_ms: 10_000 }),
  at(6, 10_300, { type: "iteration_start", iteration: 2 }),
  at(7, 10_800, { type: "text", text: "Sent." }),
  at(8, 11_300, { type: "done", status: "COMPLETED" }),
];
const WHOLE = 300 + MOST_IDLE_MS + 1000;

it("plays a turn at its own pace, with long waits shortened", () => {
  const replay = replayOf(TURN);
  expect(replay.positions).toEqual([0, 0, 200, 300, 300 + MOST_IDLE_MS, 300 + MOST_IDLE_MS, 800 + MOST_IDLE_MS, WHOLE]);
  expect([replay.duration, replay.leftOut]).toEqual([WHOLE, 10_000 - MOST_IDLE_MS]);
  expect([-1, 0, 199, 200, WHOLE].map((it) => playedAt(replay, it))).toEqual([0, 2, 2, 3, 8]);
});

it("reads the turn's own time off a position, and back", () => {
  const replay = replayOf(TURN);
  const middle = 300 + MOST_IDLE_MS / 2;
  expect(timeAt(replay, middle)).toBe(5300);
  expect(positionOf(replay, 5300)).toBe(middle);
  expect([timeAt(replay, 0), timeAt(replay, WHOLE), timeAt(replay, 99_999)]).toEqual([0, 11_300, 11_300]);
});

it("never runs backwards where a clock was set back", () => {
  const replay = replayOf([at(1, 500, { type: "turn_start" }), at(2, 100, { type: "text", text: "a" }), at(3, 200, { type: "done" })]);
  expect(replay.positions).toEqual([0, 0, 100]);
});

it("says which step is at a moment", () => {
  const timeline = timelineOf(TURN);
  expect(timeline.spans.map((it) => it.title)).toEqual(["1", "mail", "2"]);
  expect([0, 250, 5000, 10_400, 11_300].map((it) => stepAt(timeline, it))).toEqual([0, 0, 1, 2, 2]);
  expect(stepAt(timelineOf([]), 0)).toBe(-1);
});

it("halts where steps begin and end", () => {
  const replay = replayOf(TURN);
  const stops = stopsOf(replay, timelineOf(TURN));
  expect(stops).toEqual([0, 300, 300 + MOST_IDLE_MS, WHOLE]);
  expect([nextStop(stops, 0, 1), nextStop(stops, 300, -1), nextStop(stops, 0, -1), nextStop(stops, WHOLE, 1)]).toEqual([300, 0, 0, WHOLE]);
  expect(stopAt(stops, 299)).toBe(0);
});

it("has nothing to play of no events", () => {
  const replay = replayOf([]);
  expect([replay.duration, playedAt(replay, 0), timeAt(replay, 0)]).toEqual([0, 0, 0]);
});

it.each(RECORDINGS)("shows the reply as it stood at any moment, forward and backward: $name", (it) => {
  const rewind = new Rewind(begun(it), it.events);
  const half = it.events.length >> 1;
  for (const count of [half, it.events.length, 1, half])
    expect(rewind.at(count)).toEqual(foldAll(begun(it), it.events.slice(0, count)));
  expect(rewind.at(it.events.length + 5).message.parts).toEqual(it.message.parts);
});

it("counts the tokens of each model call", () => {
  expect(modelCallsOf(TURN).map(({ iteration, ms, usage }) => [iteration, ms, usage?.input_tokens, usage?.cache_read_tokens])).toEqual([
    [1, 300, 9, 4],
    [2, null, undefined, undefined],
  ]);
  const gone = TURN.map((it) => ({ ...it, replayed: true }));
  expect(modelCallsOf(gone).map((it) => it.usage)).toEqual([null, null]);
});

it("finds the moment before a crash, if there was one", () => {
  expect(crashIn(replayOf(TURN))).toBeNull();
  const [first, ...rest] = TURN;
  expect(crashIn(replayOf([first!, at(2, 4000, { type: "text", text: "a" }), at(3, 4100, { type: "turn_resumed", attempt: 2 }), ...rest]))).toBe(0);
  const written = [1000, 2000, 3000].map((ms, index) => at(index + 2, ms, { type: "text", text: "a" }));
  expect(crashIn(replayOf([first!, ...written, at(9, 9000, { type: "turn_resumed", attempt: 2 })]))).toBe(1500);
});
