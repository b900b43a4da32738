import type { ImportView } from "@threadkeep/client";
import { expect, test } from "vitest";

import { countsOf, summaryOf } from "../../src/imports/summary";
import { importWords } from "../../src/words/imports";

const RUN: ImportView = {
  id: "i",
  agentId: "a",
  fileName: "export.zip",
  size: 9,
  status: "COMPLETED",
  found: 1218,
  done: 1218,
  imported: 1214,
  alreadyThere: 3,
  empty: 0,
  leftOut: 1,
  messages: 20000,
  files: 1,
  problems: [],
  notes: [],
  conversations: [],
  error: null,
  startedAt: "2027-01-15T08:00:00Z",
  endedAt: null,
};

test("says what came of an import, in the language of the page", () => {
  expect(summaryOf(RUN, importWords.en, "en")).toBe("1,214 conversations imported");
  expect(summaryOf({ ...RUN, imported: 1 }, importWords.en, "en")).toBe("1 conversation imported");
  expect(summaryOf(RUN, importWords.zh, "zh")).toBe("已导入 1,214 个对话");
  expect(countsOf(RUN, importWords.en, "en")).toEqual(["3 already imported", "1 skipped", "20,000 messages", "1 file"]);
});

test("says that what is missing comes with the same file", () => {
  expect(summaryOf({ ...RUN, status: "STOPPED" }, importWords.en, "en")).toContain("Import the file again for the rest");
  expect(summaryOf({ ...RUN, status: "INTERRUPTED" }, importWords.en, "en")).toContain("nothing is added twice");
  expect(summaryOf({ ...RUN, status: "FAILED" }, importWords.en, "en")).toBe("Import failed");
});
