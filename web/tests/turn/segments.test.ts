import { fold, type Part } from "@threadkeep/client";
import { expect, it } from "vitest";

import { RECORDINGS, begun, recording } from "../../packages/client/tests/recordings";
import { segmentKey, segmentsOf, type Segment, type Step } from "../../src/turn/segments";

function briefStep(step: Step): string {
  if (step.type === "tool_call") return `<${step.toolName} ${step.status}>`;
  if (step.type === "notice") return `again: ${step.message}`;
  if (step.type === "step") return `[${step.name} ${step.status}]`;
  return step.type === "thought" ? step.text : `? ${step.query}`;
}

function brief(segment: Segment): string {
  switch (segment.kind) {
    case "text":
      return segment.text;
    case "activity":
      return `(${segment.steps.map(briefStep).join(" | ")})`;
    case "approval":
      return `allow ${segment.call.toolName}: ${segment.call.approval?.action}`;
    case "client_request":
      return `client ${segment.call.toolName}: ${segment.call.clientRequest?.action}`;
    case "chart":
      return "chart";
    case "files":
      return `files ${segment.ids.length}`;
    case "elsewhere":
      return `elsewhere ${segment.ids.join(" ")}`;
    case "images":
      return `images ${segment.images.map((it) => it.fileName).join(" ")}`;
    case "notices":
      return `! ${segment.notices.map((it) => it.message).join(" | ")}`;
    case "question":
      return `? ${segment.question.message}`;
    case "user_text":
      return `> ${segment.text}`;
    case "superseded":
      return `~ ${segment.segments.map(brief).join(" | ")}`;
  }
}

it.each([
  [
    "text, tool, thought, tool, text",
    ["I look at the numbers first.", "(<sales ok>)", "chart", "(Now the handbook. | <read ok>)", "Revenue grew."],
  ],
  [
    "parallel calls that end in another order",
    ["All three.", "(<sales ok> | <search_documents error> | <sales ok>)", "chart", "It grew [1]."],
  ],
  [
    "thoughts between texts and tools",
    [
      "(? growth | They mean both years.)",
      "Both years. ",
      "(Newest first.)",
      "Newest first.",
      "(Now the tool. | <sales ok> | Good. | Enough.)",
      "635.",
    ],
  ],
  ["tools that were interrupted", ["I order it.", "(<stock ok> | <order unknown> | <mail interrupted>)"]],
  [
    "cut off and continued",
    ["~ (First, ) | I look", "I look at both.", "(<sales unknown>)", "~ So | (Hm.)", "It grew."],
  ],
  ["images of a tool", ["(<draw ok>)", "images chart.png", "A line."]],
  ["steered", ["I look at 2025.", "(<sales ok>)", "> No, 2026!", "Then 2026.", "> Thanks.", "Gladly."]],
  ["questions", ["? Which?", "(<book denied>)", "? How many?", "? Pay."]],
  [
    "calls that need leave",
    [
      "I order it.",
      "(<stock ok> | <order ok> | <mail denied> | <order ok>)",
      "Done.",
    ],
  ],
  [
    "calls that the client runs",
    [
      "(<set_color ok> | <scroll error> | <print denied>)",
      "Done.",
    ],
  ],
  ["texts that show nothing", ["(<sales ok>)", "Done", "! mail cannot be reached", " here.", "(<sales denied>)", "Really."]],
])("shows the parts in the order in which they arrived: %s", (name, shown) => {
  expect(segmentsOf(recording(name).message.parts).map(brief)).toEqual(shown);
});

it.each(RECORDINGS)("leaves every segment in its order while the reply grows: $name", (it) => {
  let reply = begun(it);
  let before: string[] = [];
  for (const event of it.events) {
    reply = fold(reply, event);
    const after = segmentsOf(reply.message.parts).map(segmentKey);
    expect(new Set(after).size).toBe(after.length);
    // What is superseded is put together.
    const kept = before.filter((key) => !/^(approval|client_request)/.test(key)); // gone when they are decided
    if (event.type !== "iteration_restart") expect(after.filter((key) => kept.includes(key))).toEqual(kept);
    before = after;
  }
});

it("begins another line below what a tool has shown, and takes calls made together as one", () => {
  const call = (toolCallId: string, iteration: number, more = {}): Part => ({
    type: "tool_call",
    toolCallId,
    toolName: toolCallId,
    server: "s",
    arguments: {},
    status: "ok",
    result: null,
    durationMs: 1,
    iteration,
    ...more,
  });
  const chart = { chartData: {} };
  expect(segmentsOf([call("a", 1, chart), call("b", 1), call("c", 2), call("d", 3)]).map(brief)).toEqual([
    "(<a ok> | <b ok>)",
    "chart",
    "(<c ok> | <d ok>)",
  ]);
});

it("tells that the model was asked again as a step, and servers that are away side by side", () => {
  const notice = (code: string, message: string): Part => ({ type: "notice", code, message, iteration: 1 });
  const away = (name: string) => notice("MCP_SERVER_UNAVAILABLE", name);
  expect(segmentsOf([away("a"), away("b"), notice("MODEL_RETRIED", "busy")]).map(brief)).toEqual(["! a | b", "(again: busy)"]);
});

it("puts files that follow one another side by side", () => {
  const file = (fileId: string) => ({ type: "file", fileId, fileName: "", mediaType: "", size: 0, iteration: 0 }) as const;
  expect(segmentsOf([file("f1"), file("f2")]).map(brief)).toEqual(["files 2"]);
  const elsewhere = (id: string): Part => ({ ...file(id), isElsewhere: true }) as Part;
  const mixed = [file("f1"), elsewhere("e1"), elsewhere("e2")];
  expect(segmentsOf(mixed).map(brief)).toEqual(["files 1", "elsewhere e1 e2"]);
});

it("shows images that the server has measured, side by side, and leaves others to be saved", () => {
  const image = (fileName: string, width?: number) =>
    ({ type: "file", fileId: fileName, fileName, mediaType: "image/png", size: 9, width, height: width, iteration: 0 }) as const;
  expect(segmentsOf([image("a", 8), image("b", 8), image("c")]).map(brief)).toEqual(["images a b", "files 1"]);
});

it("knows whose question it is: the model's, or that of a call's server", () => {
  const segments = segmentsOf(recording("questions").message.parts);
  expect(segments.flatMap((it) => (it.kind === "question" ? [it.asker?.toolName] : []))).toEqual([undefined, "book", "book"]);
});

it.each([
  ["steps of a program", ["([find_order ok])", "Order 7 costs 120 €. ", "? Refund it?", "([refund ok])", "It is on its way."]],
  ["steps while another one speaks", ["([write ok])", "A first sentence.", "([look error] | [look ok])", "Mine."]],
  ["steps that were cut off", ["Wait. ", "([write ok] | [refund unknown])", "~ Half a ", "(<sales ok>)", "~ ! Slow today.", "A whole sentence.", "([billing unknown] | [charge unknown])"]],
])("puts steps between the texts: %s", (name, expected) => {
  expect(segmentsOf(recording(name).message.parts).map(brief)).toEqual(expected);
});
