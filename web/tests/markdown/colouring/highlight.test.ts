import { expect, it } from "vitest";

import { highlight } from "../../../src/markdown/colouring/highlight";

it("goes on in the string in which the lines before ended", async () => {
  const whole = await highlight('text = """one\ntwo\n"""\nx = 1', "py");
  const first = await highlight('text = """one', "py");
  const second = await highlight('two\n"""\nx = 1', "py", first!.state);
  expect([...first!.lines, ...second!.lines]).toEqual(whole!.lines);
  expect(second!.lines[0]).toEqual([["two", "var(--code-token-string-expression)"]]);
});

it("makes few pieces of a line, and loses no character", async () => {
  const code = "  const   a = [1, 2];  // done";
  const found = await highlight(code, "ts");
  expect(found!.lines[0]!.map(([text]) => text).join("")).toBe(code);
  expect(found!.lines[0]!.length).toBeLessThan(12);
});

it.each(["", "klingon", "constructor", "toString"])("leaves code of an unknown language plain: %j", async (language) => {
  expect(await highlight("x", language)).toBeNull();
});
