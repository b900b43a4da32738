import { expect, it } from "vitest";

import { Markdown } from "../../src/markdown/markdown";
import { click, draw } from "../draw";

function levelsOf(text: string): string[] {
  const { place } = draw(<Markdown text={text} />);
  return [...place.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((it) => it.tagName + it.textContent);
}

it.each([
  ["### A\n\ntext\n\n#### B\n\n### C", ["H2A", "H3B", "H2C"]],
  ["# A\n\n### B\n\n## C\n\n### D", ["H2A", "H3B", "H3C", "H4D"]],
  ["#### A\n\n# B\n\n#### C", ["H2A", "H2B", "H3C"]],
  ["A\n=\n\nB\n---\n\n### C", ["H2A", "H3B", "H4C"]],
  ["# A\n## B\n### C\n#### D\n##### E\n###### F", ["H2A", "H3B", "H4C", "H5D", "H6E", "H6F"]],
])("puts the headings of an answer one below the page's, and skips none: %j", (text, levels) => {
  expect(levelsOf(text)).toEqual(levels);
});

it.each(["```sh\n# B\n```", "text\n\n---", "- item\n---", "> quote\n---", "#hashtag"])(
  "takes what only looks like a heading for what it is: %j",
  (between) => {
    expect(levelsOf(`### A\n\n${between}\n\n#### C`)).toEqual(["H2A", "H3C"]);
  },
);

it("names footnotes quietly, and leads to one and back without leaving the page", async () => {
  const text = "One[^1].\n\n[^1]: Because.";
  const { place } = draw(
    <>
      <Markdown text={text} />
      <Markdown text={text} />
    </>,
  );
  expect(place.querySelector("h1, h2, h3, h4, h5, h6")).toBeNull();
  const [, second] = place.querySelectorAll<HTMLElement>(".markdown");
  const [reference, back] = second!.querySelectorAll("a");
  const address = location.href;
  await click(reference!);
  expect(document.activeElement).toBe(back);
  await click(back!);
  expect(document.activeElement).toBe(reference);
  expect(location.href).toBe(address);
});
