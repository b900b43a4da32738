/** The texts of an agent's permissions; they load with its settings. */

import { wordsHook } from "./language";
import { grouped } from "./format";

const en = {
  title: "Permissions",
  where: "Choose which of their tools may run under",
  intro: "What this agent may do by itself. “Ask” pauses the answer until the person in the conversation decides; “Never” keeps the tool from running at all.",
  access: { allow: "Allow", ask: "Ask", deny: "Never" },
  useDefault: (name: string) => `Use the default for ${name}`,
  general: "General",
  all: "All tools",
  allHint: "Unless a server or a tool has its own setting below.",
  askUser: "Ask questions",
  askUserHint: "The agent can pause to ask the person something.",
  clientTools: "Tools that apps bring",
  clientToolsHint: "Apps that use this agent over the API can offer tools that they run themselves.",
  clientAccess: "When the agent uses one",
  serverHint: "For its tools without a setting of their own.",
  serverAll: (name: string) => `All tools of ${name}`,
  trust: "Trust this server’s tool annotations",
  trustHint: "After a crash, tools that it marks as read-only or safe to repeat run again by themselves.",
  noServers: "This agent has no servers of its own yet. Add them under Tools.",
  noTools: "This server offers no tools.",
  connectAgain: "Connect again",
  builtIn: "Built-in tools",
  toolCount: (count: number) => (count === 1 ? "1 tool" : `${grouped(count)} tools`),
  others: "Other rules",
  othersHint: "For tools that aren’t there now.",
  effects: { read: "only reads", idempotent: "safe to repeat", write: "may make changes" },
  claims: { read: "says it only reads", idempotent: "says it’s safe to repeat" },
  effectHints: {
    read: "It changes nothing.",
    idempotent: "Running it twice has the same effect as once.",
    write: "It may change something each time it runs.",
  },
};

const zh: typeof en = {
  title: "权限",
  where: "选择哪些工具可以运行：",
  intro: "该智能体可以自行做什么。“询问”会暂停回答，等对话中的用户决定；“禁止”则完全不运行该工具。",
  access: { allow: "允许", ask: "询问", deny: "禁止" },
  useDefault: (name) => `${name} 使用默认设置`,
  general: "通用",
  all: "所有工具",
  allHint: "除非下方的服务器或工具另有设置。",
  askUser: "向用户提问",
  askUserHint: "智能体可以暂停回答，向用户提问。",
  clientTools: "应用自带的工具",
  clientToolsHint: "通过 API 使用该智能体的应用可以提供由其自行运行的工具。",
  clientAccess: "智能体使用时",
  serverHint: "用于没有单独设置的工具。",
  serverAll: (name) => `${name} 的所有工具`,
  trust: "信任此服务器的工具标注",
  trustHint: "服务中断后，标记为只读或可重复的工具会自动重新运行。",
  noServers: "该智能体还没有自己的服务器，可在“工具”中添加。",
  noTools: "该服务器没有工具。",
  connectAgain: "重新连接",
  builtIn: "内置工具",
  toolCount: (count) => `${grouped(count)} 个工具`,
  others: "其他规则",
  othersHint: "针对目前不存在的工具。",
  effects: { read: "只读", idempotent: "可重复", write: "可能更改数据" },
  claims: { read: "自称只读", idempotent: "自称可重复" },
  effectHints: {
    read: "不更改任何内容。",
    idempotent: "运行多次与一次效果相同。",
    write: "每次运行都可能更改内容。",
  },
};

export const permissionWords = { en, zh };
export const usePermissionWords = wordsHook(permissionWords);
