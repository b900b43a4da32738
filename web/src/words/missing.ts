/** What the page says where there is nothing, and of what was written to a conversation that is gone. */

import { wordsHook } from "./language";

const en = {
  missing: {
    page: { title: "Page not found", text: "There is nothing at this address." },
    conversation: { title: "Conversation not found", text: "It may have been deleted, or it belongs to someone else." },
    agent: { title: "Agent not found", text: "It may have been deleted, or it isn’t shared with you." },
  },
  searchHint: (keys: string) => `Press ${keys} to search conversations and agents.`,
  writtenHere: "You had written this here. It hasn’t been sent.",
  useInNew: "Use in a new conversation",
};

const zh: typeof en = {
  missing: {
    page: { title: "未找到页面", text: "此地址没有内容。" },
    conversation: { title: "未找到对话", text: "对话可能已被删除，或属于其他用户。" },
    agent: { title: "未找到智能体", text: "智能体可能已被删除，或未对你公开。" },
  },
  searchHint: (keys: string) => `按 ${keys} 搜索对话和智能体。`,
  writtenHere: "你在这里写了以下内容，尚未发送。",
  useInNew: "用于新对话",
};

export const missingWords = { en, zh };
export const useMissingWords = wordsHook(missingWords);
