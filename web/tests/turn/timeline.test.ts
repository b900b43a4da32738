import { type TurnEvent } from "@threadkeep/client";
import { expect, it } from "vitest";

import { timelineOf } from "../../src/turn/timeline";

const at = (seq: number, ms: number, body: object) => ({ turn_id: "t", seq, at: 1000 + ms, ...body }) as TurnEvent;

it("shows model calls and tools side by side", () => {
  const { spans, duration } = timelineOf([
    at(1, 0, { type: "turn_start" }),
    at(2, 5, { type: "iteration_start", iteration: 1 }),
    at(3, 40, { type: "tool_call", tool_call_id: "a", tool_name: "add" }),
    at(4, 80, { type: "tool_call", tool_call_id: "b", tool_name: "mail" }),
    at(5, 100, { type: "usage" }),
    at(6, 300, { type: "tool_result", tool_call_id: "b", status: "timeout" }),
    at(7, 200, { type: "tool_result", tool_call_id: "a", status: "ok" }),
    at(8, 310, { type: "iteration_start", iteration: 2 }),
    at(9, 400, { type: "error" }),
  ]);
  expect(duration).toBe(400);
  expect(spans.map(({ kind, title, from, to, ok }) => [kind, title, from, to, ok])).toEqual([
    ["model", "1", 5, 100, true],
    ["tool", "add", 100, 200, true],
    ["tool", "mail", 100, 300, false],
    ["model", "2", 310, 400, false],
  ]);
});

it.each([
  ["completed", at(99, 400, { type: "done" })],
  ["failed", at(99, 400, { type: "error" })],
])("shows the same when the log is gone and the events are made from the reply: %s", (_, ending) => {
  const called = [
    at(5, 100, { type: "tool_call", tool_call_id: "a", tool_name: "add" }),
    at(6, 100, { type: "tool_call", tool_call_id: "b", tool_name: "mail" }),
  ];
  const resulted = [
    at(8, 300, { type: "tool_result", tool_call_id: "a", status: "ok" }),
    at(7, 200, { type: "tool_result", tool_call_id: "b", status: "timeout" }),
  ];
  const begun = [at(1, 0, { type: "turn_start" }), at(2, 0, { type: "iteration_start", iteration: 1 })];
  const spent = at(4, 100, { type: "usage" });
  const log = [...begun, spent, ...called, ...resulted, at(9, 300, { type: "iteration_start", iteration: 2 }), ending];
  const replay = [
    ...begun,
    ...[called[0]!, resulted[0]!, called[1]!, resulted[1]!],
    at(9, 200, { type: "iteration_start", iteration: 2 }),
    at(10, 400, { type: "usage" }),
    ending,
  ].map((it) => ({ ...it, replayed: true }));
  const whole = timelineOf(log);
  expect(whole.spans.map(({ ok }) => ok)).toEqual([true, true, false, ending.type === "done"]);
  expect(timelineOf(replay)).toEqual(whole);
});

it("has nothing to show of no events", () => {
  expect(timelineOf([])).toEqual({ spans: [], duration: 0 });
});

it("shows a model call that was cut off beside the one that was made again, and how long one was waited for", () => {
  const { spans } = timelineOf([
    at(1, 0, { type: "turn_start" }),
    at(2, 5, { type: "iteration_start", iteration: 1 }),
    at(3, 40, { type: "text", text: "I loo" }),
    at(4, 500, { type: "turn_resumed", attempt: 1 }),
    at(5, 505, { type: "usage" }), // of the call that was cut off
    at(5, 510, { type: "iteration_restart", iteration: 1, from_seq: 3 }),
    at(6, 600, { type: "usage" }),
    at(7, 600, { type: "tool_call", tool_call_id: "a", tool_name: "add" }),
    at(8, 610, { type: "approval_request", request_id: "r" }),
    at(9, 900, { type: "approval_response", request_id: "r", action: "allow" }),
    at(10, 950, { type: "tool_result", tool_call_id: "a", status: "ok" }),
    at(11, 960, { type: "done" }),
  ]);
  expect(spans.map(({ kind, from, to, superseded = false }) => [kind, from, to, superseded])).toEqual([
    ["model", 5, 40, true],
    ["model", 510, 600, false],
    ["tool", 600, 950, false],
    ["waiting", 610, 900, false],
  ]);
});

it("tells the calls of a tool apart by what they were about, as the user allowed them", () => {
  const called = (seq: number, id: string, city: string) =>
    at(seq, seq, { type: "tool_call", tool_call_id: id, tool_name: "weather", server: "office", arguments: { unit: "C", city } });
  const { spans } = timelineOf([
    called(1, "a", "Oslo"),
    called(2, "b", "Lima"),
    at(3, 3, { type: "approval_request", request_id: "r", kind: "tool", message: "", expires_at: 0, tool_call_id: "b" }),
    at(4, 4, { type: "approval_response", request_id: "r", action: "edit", arguments: { unit: "C", city: "Cusco" } }),
    at(5, 5, { type: "tool_call", tool_call_id: "c", tool_name: "now", server: "office", arguments: {} }),
  ]);
  expect(spans.filter(({ kind }) => kind === "tool").map(({ title, preview }) => [title, preview])).toEqual([
    ["weather", "Oslo"],
    ["weather", "Cusco"],
    ["now", undefined],
  ]);
});

it("shows a program's steps, its model calls by their usage, and where it was interrupted", () => {
  const { spans } = timelineOf([
    at(1, 0, { type: "turn_start" }),
    at(2, 5, { type: "step", step_id: "1", name: "find", title: "Looked it up", status: "running" }),
    at(3, 20, { type: "step", step_id: "1", name: "find", title: "Looked it up", status: "ok" }),
    at(4, 20, { type: "iteration_start", iteration: 1, step_id: "" }),
    at(5, 25, { type: "step", step_id: "2", name: "billing", status: "running" }),
    at(6, 30, { type: "step", step_id: "3", name: "charge", parent_id: "2", status: "running" }),
    at(7, 40, { type: "turn_resumed", attempt: 1 }),
    at(8, 50, { type: "step", step_id: "3", name: "charge", parent_id: "2", status: "unknown" }),
    at(9, 60, { type: "step", step_id: "2", name: "billing", status: "error" }),
    at(10, 70, { type: "iteration_start", iteration: 2, step_id: "4" }),
    at(11, 90, { type: "usage" }),
    at(12, 95, { type: "turn_resumed", attempt: 0 }),
    at(13, 99, { type: "done" }),
  ]);
  expect(spans.map(({ kind, title, from, to, ok, isCode, isUnknown, depth }) => [kind, title, from, to, ok, !!isCode, !!isUnknown, depth ?? 0])).toEqual([
    ["step", "Looked it up", 5, 20, true, false, false, 0],
    ["step", "billing", 25, 60, false, true, false, 0],
    ["step", "charge", 30, 50, true, true, true, 1],
    ["resumed", "1", 40, 40, true, false, false, 0],
    ["model", "1", 70, 90, true, false, false, 0],
  ]);
});
