import { expect, it } from "vitest";

import { blocksOf } from "../../src/markdown/blocks";

it("cuts at blank lines", () => {
  expect(blocksOf("one\n\ntwo\nstill two\n\n# three")).toEqual(["one\n", "two\nstill two\n", "# three"]);
});

it.each([
  ["code", "```py\na\n\nb\n```"],
  ["code within code", "````md\n```\n\n```\n\nx\n````"],
  ["a formula", "$$\na\n\nb\n$$"],
  ["a loose list", "1. a\n\n2. b\n\n   more of b\n\n3. c"],
  ["code in a list", "- a\n\n  ```\n  x\n\n  y\n  ```\n\n- b"],
])("keeps %s together", (_, text) => {
  expect(blocksOf(text)).toEqual([text]);
});

it("goes on after code that has ended", () => {
  expect(blocksOf("```\na\n```\n\nafter")).toEqual(["```\na\n```\n", "after"]);
});

it("keeps a text with definitions whole", () => {
  const text = "See [it].\n\n[it]: https://example.org";
  expect(blocksOf(text)).toEqual([text]);
});

it("only changes its last block while a text grows", () => {
  const text = "para\n\n- a\n- b\n\n```js\nlet x = 1;\n\nlet y = 2;\n```\n\nend **bold** text\n\n| a | b |\n|---|---|\n| 1 | 2 |";
  for (let size = 1; size < text.length; size++) {
    const now = blocksOf(text.slice(0, size));
    const next = blocksOf(text.slice(0, size + 1));
    expect(next.slice(0, now.length - 1)).toEqual(now.slice(0, -1));
  }
});

it("is quick with a line of a million characters", () => {
  expect(blocksOf("x".repeat(1_000_000))).toHaveLength(1);
});
