import { expect, it } from "vitest";

import { describeSkipped } from "../../src/imports/skipped";
import { importWords } from "../../src/words/imports";

it.each([
  ["too_large", "conversation 4 'Broken' (at byte 1,234)", "it is larger than 9,000 bytes", "“Broken”, conversation 4: it is too large", "“Broken”（第 4 个对话）：太大"],
  [
    "unreadable",
    "conversation 2 (at byte 7)",
    "Object missing required field `conversation_id`",
    "Conversation 2: it can’t be read (Object missing required field `conversation_id`)",
    "第 2 个对话：无法读取（Object missing required field `conversation_id`）",
  ],
  ["duplicate", "conversation Tea", "another item in this file has the same id 'x'", "“Tea”: the file has another conversation with the same id", "“Tea”：文件中有另一个编号相同的对话"],
  ["too_many_branches", "Tea", "12 of its branches exceed the limit", "“Tea”: it has more branches than can be imported; the others were", "“Tea”：分支过多，超出的部分没有导入"],
  ["incomplete", "line 9", "it belongs to no conversation", "Line 9: a part of it is missing (it belongs to no conversation)", "第 9 行：内容不完整（it belongs to no conversation）"],
  ["unreadable", "the file", "something new", "The file: it can’t be read (something new)", "文件：无法读取（something new）"],
] as const)("says why it was skipped, %s: %j", (reason, what, why, en, zh) => {
  expect(describeSkipped({ what, why, reason }, importWords.en)).toBe(en);
  expect(describeSkipped({ what, why, reason }, importWords.zh)).toBe(zh);
});
