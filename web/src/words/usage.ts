/** The texts of the page of usage; they load with it. */

import { wordsHook } from "./language";

const en = {
  usageTitle: "Usage",
  usageOf: "Last 30 days",
  turns: "Answers",
  tokens: "Tokens",
  day: "Day",
  noUsage: "No usage yet",
  total: "Total",
  cachedShare: "Cached input",
  byAgent: "By agent",
  byDay: "By day",
  byModel: "By model",
  byKey: "By API key",
  apiKey: "API key",
  deletedKey: "Revoked key",
  withoutKey: "Without a key",
  unknownModel: "Unknown model",
  notKnown: "Not known",
  atLeast: (amount: string) => `At least ${amount}`,
  unpriced: (models: string, calls: string, isOne: boolean) => `No price was known for ${models} (${calls} model ${isOne ? "call" : "calls"}). A price counts from the next call on.`,
  setPrice: "Set a price",
  adminSetsPrice: "An administrator can set it under Models.",
  downloadCsv: "Download as CSV",
  budgets: "Budgets",
  yourBudget: "Your budget",
  perPeriod: { day: "per day", month: "per month" },
  budgetOf: (whose: string, period: string) => `${whose} ${period}`,
  spentOf: (spent: string, limit: string) => `${spent} of ${limit}`,
  reservedNow: (amount: string) => `${amount} reserved by running calls.`,
  resetsAt: (time: string) => `Resets ${time}.`,
};

const zh: typeof en = {
  usageTitle: "用量",
  usageOf: "近 30 天",
  turns: "回答",
  tokens: "Token",
  day: "日期",
  noUsage: "暂无用量",
  total: "合计",
  cachedShare: "输入缓存占比",
  byAgent: "按智能体",
  byDay: "按日期",
  byModel: "按模型",
  byKey: "按 API 密钥",
  apiKey: "API 密钥",
  deletedKey: "已撤销的密钥",
  withoutKey: "未使用密钥",
  unknownModel: "未知模型",
  notKnown: "未知",
  atLeast: (amount: string) => `至少 ${amount}`,
  unpriced: (models: string, calls: string) => `${models} 的价格未知（${calls} 次模型调用）。设置的价格从下一次调用起生效。`,
  setPrice: "设置价格",
  adminSetsPrice: "管理员可以在“模型”页面设置价格。",
  downloadCsv: "下载 CSV",
  budgets: "预算",
  yourBudget: "你的预算",
  perPeriod: { day: "每天", month: "每月" },
  budgetOf: (whose: string, period: string) => `${whose}（${period}）`,
  spentOf: (spent: string, limit: string) => `${spent} / ${limit}`,
  reservedNow: (amount: string) => `进行中的调用已预留 ${amount}。`,
  resetsAt: (time: string) => `${time} 重置。`,
};

export type UsageWords = typeof en;

export const usageWords = { en, zh };
export const useUsageWords = wordsHook(usageWords);
