import { act } from "react";
import { expect, it } from "vitest";

import { Markdown } from "../../src/markdown/markdown";
import { draw } from "../draw";

const FENCE = "```";

it.each([
  [`${FENCE}mermaid\nflowchart LR`, false],
  [`${FENCE}mermaid\nflowchart LR\n${FENCE}`, true],
  [`~~~mermaid\nflowchart LR\n${FENCE}`, false],
  [`- item\n  ${FENCE}mermaid\n  flowchart LR\n  ${FENCE}`, true],
])("shows a diagram in text that is still coming only once it is complete: %j", async (text, isComplete) => {
  const { place } = draw(<Markdown text={text} live />);
  await act(async () => {
    await import("../../src/markdown/previewed-code");
    await new Promise((resolve) => setTimeout(resolve));
  });
  expect(place.querySelector(".previewed") !== null).toBe(isComplete);
});

it("shows code as code, however long it is", () => {
  const code = "<p>".repeat(20_000);
  const { place } = draw(<Markdown text={`${FENCE}xml\n${code}\n${FENCE}`} />);
  expect(place.querySelector("figure.code pre")!.textContent).toBe(code);
});
