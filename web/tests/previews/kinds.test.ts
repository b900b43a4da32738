import { expect, it } from "vitest";

import { kindOfCode, kindOfFile } from "../../src/previews/kinds";

it.each([
  ["mermaid", "flowchart LR", "mermaid"],
  ["html", "<p>", "html"],
  ["html", '\n<svg viewBox="0 0 1 1"/>', "svg"],
  ["xml", '<?xml version="1.0"?>\n<svg />', "svg"],
  ["xml", "<note/>", null],
  ["python", "<svg>", null],
  ["constructor", "", null],
])("shows %s %j as %s", (language, code, kind) => {
  expect(kindOfCode(language, code)).toBe(kind);
});

it("knows files by their names", () => {
  const names = ["a.SVG", "report.html", "flow.mmd", "b.mermaid", "sales.csv", "notes.md", "notes.txt", "html"];
  expect(names.map((it) => kindOfFile(it, 9))).toEqual(["svg", "html", "mermaid", "mermaid", "csv", "markdown", null, null]);
  expect(kindOfFile("a.svg", 20_000_000)).toBeNull();
});
