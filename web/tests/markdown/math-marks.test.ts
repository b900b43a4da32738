import { expect, it } from "vitest";

import { withMathMarks } from "../../src/markdown/math-marks";

it.each([
  ["money", "It costs $5 and $10.", "It costs \\$5 and \\$10."],
  ["a lone mark", "5$ a day", "5\\$ a day"],
  ["a formula in a line", "where $x^2$ is", "where $x^2$ is"],
  ["TeX's own marks", "where \\(x^2\\) is", "where $x^2$ is"],
  ["a formula on its own line", "$$a + b$$", "$$\na + b\n$$"],
  ["code", "`$a$ and $5` is", "`$a$ and $5` is"],
  ["a block of code", "```sh\necho $HOME $PATH\n```", "```sh\necho $HOME $PATH\n```"],
  ["what is escaped", "\\$5", "\\$5"],
])("reads %s", (_, text, read) => {
  expect(withMathMarks(text)).toBe(read);
});
