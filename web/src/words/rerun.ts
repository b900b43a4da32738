/** What trying another model says. Loaded when the user does. */

import { wordsHook } from "./language";

const en = {
  hint: "Sends the same request to another model. Tool calls take the results they had; no tool runs, and the conversation stays as it is. It costs what the model charges.",
  run: "Run",
  runAgain: "Run again",
  stop: "Stop",
  original: "This answer",
  other: "Other model",
  noText: "No text",
  noPrice: "Price unknown",
  tokens: (count: string) => `${count} output tokens`,
  calls: "Tool calls",
  onlyHere: "(only here)",
  needsTool: "Ended here: the model calls a tool with arguments that this answer has no result for.",
  regenerate: "Regenerate the answer with this model",
  outcome: { COMPLETED: "Done", NEEDS_TOOL: "Ended at a tool call", FAILED: "Failed" },
};

const zh: typeof en = {
  hint: "把同样的请求发给另一个模型。工具调用直接使用当时的结果，不会运行任何工具，对话也不会改变。按该模型的价格计费。",
  run: "运行",
  runAgain: "再次运行",
  stop: "停止",
  original: "当前回答",
  other: "另一个模型",
  noText: "没有文字",
  noPrice: "价格未知",
  tokens: (count) => `输出 ${count} token`,
  calls: "工具调用",
  onlyHere: "（仅此处）",
  needsTool: "到此为止：模型要用的工具参数在当前回答中没有对应的结果。",
  regenerate: "用这个模型重新生成回答",
  outcome: { COMPLETED: "已完成", NEEDS_TOOL: "停在工具调用处", FAILED: "失败" },
};

export const rerunWords = { en, zh };
export const useRerunWords = wordsHook(rerunWords);
