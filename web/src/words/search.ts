/** The texts of the search; they load with it. */

import { wordsHook } from "./language";
import { grouped } from "./format";

const en = {
  hint: "Search messages, agents and actions",
  clear: "Clear",
  recent: "Recent",
  toChoose: "to choose",
  toOpen: "to open",
  resultCount: (count: number, hasMore: boolean) =>
    count === 1 && !hasMore ? "1 conversation found" : `${grouped(count)}${hasMore ? "+" : ""} conversations found`,
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
  running: "Running turns",
  people: "People",
  sessions: "Where you’re signed in",
  apiKeys: "API keys",
  memory: "Memory and your instructions",
  import: "Import from ChatGPT or Claude",
  notifications: "Notifications",
  offline: "Offline use",
  share: "Share this conversation",
  shareOne: "Share a conversation",
  shareHow: "Open it, then choose Share above it",
  agentSettings: "Agent settings",
  agentTab: (agent: string, tab: string) => `${agent}: ${tab}`,
  agentTabs: { general: "Settings", prompt: "Prompt", tools: "Tools", permissions: "Permissions", documents: "Documents", feedback: "Feedback", limits: "Advanced settings" },
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
  resultCount: (count: number, hasMore: boolean) => `找到 ${grouped(count)}${hasMore ? "+" : ""} 个对话`,
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
  running: "运行中的轮次",
  people: "人员",
  sessions: "已登录的位置",
  apiKeys: "API 密钥",
  memory: "记忆和你的指令",
  import: "从 ChatGPT 或 Claude 导入",
  notifications: "通知",
  offline: "离线使用",
  share: "分享此对话",
  shareOne: "分享对话",
  shareHow: "打开对话，然后点击上方的“分享”",
  agentSettings: "智能体设置",
  agentTab: (agent, tab) => `${agent}：${tab}`,
  agentTabs: { general: "设置", prompt: "提示词", tools: "工具", permissions: "权限", documents: "文档", feedback: "反馈", limits: "高级设置" },
  nothing: (hasWords, isFiltered) => {
    if (hasWords) return isFiltered ? "筛选范围内没有同时包含这些词的对话" : "没有同时包含这些词的对话";
    return isFiltered ? "筛选范围内没有匹配的结果" : "没有匹配的结果";
  },
  withoutFilters: "不用筛选再搜索",
};

/** What else people call things, in whichever language they type. */
export const KEYWORDS = {
  usage: "usage costs prices money spending spent expenses budgets tokens bill 用量 费用 价格 花费 花销 成本 金额 钱 预算 账单",
  models: "models prices costs providers keys gateways connect llm openai anthropic ollama 价格 费用 服务商 提供商 供应商 密钥 网关 接入 连接",
  running: "turns running workers agents stop operate admin 轮次 运行 进程 停止 运维",
  people: "people users invite invitations members team admin suspend accounts 人员 用户 成员 邀请 团队 停用",
  sessions: "sessions devices browsers sign out everywhere security 登录 设备 浏览器 退出 安全",
  keys: "keys tokens programs api developers 密钥 令牌 程序",
  memory: "memory memories remembers instructions personal custom facts forget about me 记忆 记住 记得 指令 忘记 个人",
  import: "imports chatgpt openai claude anthropic exports migrate upload bring 导入 导出 迁移 搬家",
  conversations: "chats history select several bulk 历史 批量 全部",
  archive: "archive hidden old 归档",
  deleted: "trash bin restore undo 回收站 恢复 还原 删除",
  share: "shares links public publish send url 分享 链接 共享 公开",
  settings: "settings options preferences account profile language theme 设置 选项 偏好 账户 语言 主题",
  notifications: "notify alerts notifications bell sound push 通知 提醒",
  offline: "offline device copies cache connection install 离线 设备 缓存 断网",
  theme: "theme dark light mode night appearance colours colors 主题 深色 浅色 夜间 外观",
  language: "language english chinese 语言 中文 英文",
  shortcuts: "keyboard keys hotkeys help 快捷键 键盘 帮助",
  agentTabs: {
    general: "agent settings edit rename model icon name 智能体 设置 模型 名称 图标",
    prompt: "prompt instructions system files 提示词 指令",
    tools: "tools mcp servers connect functions plugins 工具 服务器 插件",
    permissions: "permissions tools allow ask forbid deny never block approvals rules safety 权限 工具 允许 询问 禁止 拒绝 审批 批准",
    documents: "documents files knowledge upload pdf rag 文档 文件 知识库 上传",
    feedback: "feedback ratings thumbs 反馈 评分 评价",
    limits: "advanced limits budgets temperature context costs 高级 限制 预算 温度 上下文",
  },
};

export const searchWords = { en, zh };
export const useSearchWords = wordsHook(searchWords);
