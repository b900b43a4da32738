/** The texts of the page of API keys; they load with it. */

import { useStore } from "@threadkeep/react";

import { language, type Language } from "../state/preferences";

const en = {
  title: "API keys",
  intro: "A program signs in with a key as you, and does no more than the key allows. Keep keys secret, and revoke those you no longer use.",
  manage: "Manage API keys",
  create: "New key",
  nothing: "No keys yet",
  nameHint: "What uses it, so that you recognize it later",
  may: "It may",
  scopes: { read: "Read", chat: "Chat", admin: "Everything" },
  scopeHints: {
    read: "See what you can see",
    chat: "Also hold conversations, send files and answer requests",
    admin: "Do all that you may do, for at most 90 days",
  },
  allAgents: "All agents",
  someAgents: "Only some, and the conversations with them",
  expires: "Expires",
  inDays: (days: number) => `In ${days} days`,
  never: "Never",
  budget: "Budget per month",
  budgetHint: "In the server’s currency",
  noLimit: "No limit",
  make: "Make key",
  made: (name: string) => `Your key “${name}”`,
  shownOnce: "Copy it now: nobody can read it again later, because only its hash is stored.",
  copyKey: "Copy key",
  saved: "I have saved it",
  connect: "Connect",
  copyCode: (language: string) => `Copy ${language} code`,
  revoke: "Revoke",
  revokeIt: (name: string) => `Revoke “${name}”`,
  revokeText: "Programs that use it are signed out within seconds. This can’t be undone.",
  revoked: (name: string) => `Revoked “${name}”.`,
  neverUsed: "Never used",
  lastUsed: (time: string) => `Last used ${time}`,
  expiresAt: (time: string) => `Expires ${time}`,
  expiredAt: (time: string) => `Expired ${time}`,
  onlyFor: (agents: string) => `Only for ${agents}`,
  budgetOf: (amount: string) => `${amount} per month`,
};

const zh: typeof en = {
  title: "API 密钥",
  intro: "程序用密钥以你的身份登录，只能做密钥允许的事。请妥善保管，并撤销不再使用的密钥。",
  manage: "管理 API 密钥",
  create: "新建密钥",
  nothing: "还没有密钥",
  nameHint: "由什么使用，便于日后辨认",
  may: "权限",
  scopes: { read: "读取", chat: "对话", admin: "全部" },
  scopeHints: {
    read: "查看你能看到的内容",
    chat: "还可以对话、发送文件、答复请求",
    admin: "做你能做的一切，最长 90 天",
  },
  allAgents: "所有智能体",
  someAgents: "仅部分智能体及与其的对话",
  expires: "有效期",
  inDays: (days: number) => `${days} 天`,
  never: "永不过期",
  budget: "每月预算",
  budgetHint: "以服务器的货币计",
  noLimit: "不限",
  make: "创建密钥",
  made: (name: string) => `你的密钥“${name}”`,
  shownOnce: "请立即复制：服务器只保存其哈希，之后无法再次查看。",
  copyKey: "复制密钥",
  saved: "我已保存",
  connect: "连接",
  copyCode: (language: string) => `复制 ${language} 代码`,
  revoke: "撤销",
  revokeIt: (name: string) => `撤销“${name}”`,
  revokeText: "使用它的程序会在数秒内退出登录。此操作无法撤消。",
  revoked: (name: string) => `已撤销“${name}”。`,
  neverUsed: "从未使用",
  lastUsed: (time: string) => `上次使用：${time}`,
  expiresAt: (time: string) => `到期：${time}`,
  expiredAt: (time: string) => `已于 ${time} 过期`,
  onlyFor: (agents: string) => `仅限 ${agents}`,
  budgetOf: (amount: string) => `每月 ${amount}`,
};

const byLanguage: Record<Language, typeof en> = { en, zh };

export function useKeyWords(): typeof en {
  return byLanguage[useStore(language)];
}
