import { expect, it } from "vitest";

import { fileName } from "../../src/api/download";

it.each([
  ["attachment; filename=\"a_.txt\"; filename*=UTF-8''%E8%A1%A8.txt", "表.txt"],
  ['attachment; filename="a.txt"', "a.txt"],
  ["attachment; filename*=UTF-8''%E8%A1", null],
  [null, null],
])("reads a file's name: %s", (header, name) => {
  expect(fileName(header)).toBe(name);
});
