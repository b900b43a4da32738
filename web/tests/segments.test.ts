import { expect, it } from "vitest";

import { fold } from "../src/turn/fold";
import { segmentsOf, type Segment } from "../src/turn/segments";
import { RECORDINGS, begun, recording } from "./recordings";

function brief(segment: Segment): string {
  switch (segment.kind) {
    case "text":
      return segment.text;
    case "steps":
      return `(${segment.steps.map((it) => (it.type === "thought" ? it.text : `? ${it.query}`)).join(" | ")})`;
    case "tool":
      return `<${segment.call.toolName} ${segment.call.status}>`;
    case "files":
      return `files ${segment.ids.length}`;
    case "images":
      return `images ${segment.images.map((it) => it.fileName).join(" ")}`;
    case "notice":
      return `! ${segment.message}`;
    case "question":
      return `? ${segment.question.message}`;
    case "said":
      return `> ${segment.text}`;
    case "superseded":
      return `~ ${segment.segments.map(brief).join(" | ")}`;
  }
}

it.each([
  [
    "text, tool, thought, tool, text",
    ["I look at the numbers first.", "<sales ok>", "(Now the handbook.)", "<read ok>", "Revenue grew."],
  ],
  [
    "parallel calls that end in another order",
    ["All three.", "<sales ok>", "<search_documents error>", "<sales ok>", "It grew [1]."],
  ],
  [
    "thoughts between texts and tools",
    [
      "(? growth | They mean both years.)",
      "Both years. ",
      "(Newest first.)",
      "Newest first.",
      "(Now the tool.)",
      "<sales ok>",
      "(Good. | Enough.)",
      "635.",
    ],
  ],
  ["tools that were interrupted", ["I order it.", "<stock ok>", "<order unknown>", "<mail interrupted>"]],
  [
    "cut off and continued",
    ["~ (First, ) | I look", "I look at both.", "<sales unknown>", "~ So | (Hm.)", "It grew."],
  ],
  ["steered", ["I look at 2025.", "<sales ok>", "> No, 2026!", "Then 2026.", "> Thanks.", "Gladly."]],
  ["questions", ["? Which?", "<book denied>", "? How many?", "? Pay."]],
  ["texts that show nothing", ["<sales ok>", "Done", "! mail cannot be reached", " here.", "<sales denied>", "Really."]],
])("shows the parts in the order in which they arrived: %s", (name, shown) => {
  expect(segmentsOf(recording(name).message.parts).map(brief)).toEqual(shown);
});

it.each(RECORDINGS)("leaves every segment where it is while the reply grows: $name", (it) => {
  let reply = begun(it);
  let before: Segment[] = [];
  for (const event of it.events) {
    reply = fold(reply, event);
    const after = segmentsOf(reply.message.parts);
    // What is superseded is put together.
    if (event.type !== "iteration_restart") expect(after.slice(0, before.length).map(({ kind, from }) => [kind, from])).toEqual(before.map(({ kind, from }) => [kind, from]));
    before = after;
  }
});

it("puts files that follow one another side by side", () => {
  const file = (fileId: string) => ({ type: "file", fileId, fileName: "", mediaType: "", size: 0, iteration: 0 }) as const;
  expect(segmentsOf([file("f1"), file("f2")]).map(brief)).toEqual(["files 2"]);
});

it("shows images that the server has measured, side by side, and leaves others to be saved", () => {
  const image = (fileName: string, width?: number) =>
    ({ type: "file", fileId: fileName, fileName, mediaType: "image/png", size: 9, width, height: width, iteration: 0 }) as const;
  expect(segmentsOf([image("a", 8), image("b", 8), image("c")]).map(brief)).toEqual(["images a b", "files 1"]);
});
