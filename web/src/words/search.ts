/** The texts of the search; they load with it. */

import { useStore } from "@threadkeep/react";

import { language, type Language } from "../state/preferences";
import { grouped } from "./format";

const en = {
  hint: "Search messages, agents and actions",
  clear: "Clear",
  recent: "Recent",
  toChoose: "to choose",
  toOpen: "to open",
  resultCount: (count: number) => (count === 1 ? "1 conversation found" : `${grouped(count)} conversations found`),
  /** There are at least so many where older messages haven’t been searched yet. */
  moreHere: (count: number, isAtLeast: boolean) => `${grouped(count)}${isAtLeast ? "+" : ""} more in this conversation`,
  moreResults: "Show older results",
  anyAgent: "Any agent",
  byAgent: (name: string) => `Agent: ${name}`,
  byDate: (period: string) => `Date: ${period}`,
  periods: { any: "Any time", today: "Today", week: "Last 7 days", month: "Last 30 days", days: "Choose days" },
  firstDay: "First day",
  lastDay: "Last day",
  clearFilters: "Clear filters",
  models: "Models",
  apiKeys: "API keys",
  usageKeywords: "costs prices money spending spent budgets tokens bill",
  modelKeywords: "prices costs providers keys gateways connect",
  /** Every word has to occur. */
  nothing: (hasWords: boolean, isFiltered: boolean): string => {
    if (hasWords) return isFiltered ? "No conversation within these filters has all of these words" : "No conversation has all of these words";
    return isFiltered ? "No results within these filters" : "No results";
  },
  withoutFilters: "Search without filters",
};

const zh: typeof en = {
  hint: "搜索消息、智能体和操作",
  clear: "清除",
  recent: "最近",
  toChoose: "选择",
  toOpen: "打开",
  resultCount: (count: number) => `找到 ${grouped(count)} 个对话`,
  moreHere: (count, isAtLeast) => `此对话中还有 ${grouped(count)}${isAtLeast ? "+" : ""} 条`,
  moreResults: "显示更早的结果",
  anyAgent: "所有智能体",
  byAgent: (name: string) => `智能体：${name}`,
  byDate: (period: string) => `日期：${period}`,
  periods: { any: "任何时间", today: "今天", week: "最近 7 天", month: "最近 30 天", days: "选择日期" },
  firstDay: "开始日期",
  lastDay: "结束日期",
  clearFilters: "清除筛选",
  models: "模型",
  apiKeys: "API 密钥",
  usageKeywords: "费用 价格 花费 花销 成本 金额 钱 预算 token cost price money",
  modelKeywords: "价格 费用 服务商 提供商 供应商 密钥 网关 接入 price provider key",
  nothing: (hasWords, isFiltered) => {
    if (hasWords) return isFiltered ? "筛选范围内没有同时包含这些词的对话" : "没有同时包含这些词的对话";
    return isFiltered ? "筛选范围内没有匹配的结果" : "没有匹配的结果";
  },
  withoutFilters: "不用筛选再搜索",
};

export const searchWords: Record<Language, typeof en> = { en, zh };

export function useSearchWords(): typeof en {
  return searchWords[useStore(language)];
}
