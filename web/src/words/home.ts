/** The texts of the first screen below its composer; they load with it. */

import { wordsHook } from "./language";

const en = {
  allAgents: "All agents",
  defaultAbout: "The default agent.",
  newAgentAbout: "Give it a prompt, tools and documents of its own.",
  requests: "Waiting for you",
  recent: "Recent conversations",
  before: "Coming from ChatGPT or Claude?",
  bring: "Import your conversations",
};

const zh: typeof en = {
  allAgents: "全部智能体",
  defaultAbout: "默认智能体。",
  newAgentAbout: "为它配置专属的提示词、工具和文档。",
  requests: "等待你处理",
  recent: "最近的对话",
  before: "之前在用 ChatGPT 或 Claude？",
  bring: "导入你的对话",
};

export const homeWords = { en, zh };
export const useHomeWords = wordsHook(homeWords);
