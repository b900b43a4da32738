/** The texts of the page about what agents know of the user; they load with it. */

import { wordsHook } from "./language";

const en = {
  title: "Memory",
  intro: "What you tell every agent, and what agents remember about you. Only you can see it.",
  manage: "Manage memory",
  instructions: "Your instructions",
  toEveryAgent: "What every agent should know and do",
  instructionsHint: "Every agent gets this with each answer, unless its owner has switched it off.",
  instructionsExample: "For example: I’m a nurse in Lyon. Answer briefly, and in metric units.",
  instructionsSaved: "Saved. Agents get it from their next answer on.",
  remembered: "What agents remember",
  agent: "Agent",
  nothing: (agent: string) => `${agent} doesn’t remember anything about you.`,
  nothingHint: "Agents remember what you ask them to, or what seems worth keeping.",
  content: "Memory",
  edit: "Edit",
  editIt: (content: string) => `Edit “${content}”`,
  forget: "Forget",
  forgetIt: (content: string) => `Forget “${content}”`,
  forgetOne: "Forget this?",
  forgetOneText: (content: string) => `“${content}” This can’t be undone.`,
  forgotten: "Forgotten.",
  forgetAll: "Forget everything",
  forgetAllOf: (agent: string) => `Make ${agent} forget everything about you?`,
  forgetAllText: "This can’t be undone. Your conversations stay.",
};

const zh: typeof en = {
  title: "记忆",
  intro: "你对所有智能体的要求，以及智能体记住的关于你的内容。只有你能看到。",
  manage: "管理记忆",
  instructions: "你的指令",
  toEveryAgent: "希望所有智能体知道和做到的",
  instructionsHint: "每次回答时都会提供给智能体，除非其所有者已关闭此功能。",
  instructionsExample: "例如：我是里昂的一名护士。回答请简短，并使用公制单位。",
  instructionsSaved: "已保存，从下一次回答起生效。",
  remembered: "智能体记住的内容",
  agent: "智能体",
  nothing: (agent: string) => `${agent}没有记住关于你的任何内容。`,
  nothingHint: "智能体会记住你要求它记住的，或值得保留的内容。",
  content: "记忆",
  edit: "编辑",
  editIt: (content: string) => `编辑“${content}”`,
  forget: "忘记",
  forgetIt: (content: string) => `忘记“${content}”`,
  forgetOne: "忘记这条内容？",
  forgetOneText: (content: string) => `“${content}”。此操作无法恢复。`,
  forgotten: "已忘记。",
  forgetAll: "全部忘记",
  forgetAllOf: (agent: string) => `让${agent}忘记关于你的一切？`,
  forgetAllText: "此操作无法恢复。对话会保留。",
};

export const memoryWords = { en, zh };
export const useMemoryWords = wordsHook(memoryWords);
