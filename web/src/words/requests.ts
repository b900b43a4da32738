/** The texts of a turn's requests to its user; they load with the first request. */

import { useStore } from "@threadkeep/react";

import { language, type Language } from "../state/preferences";

const en = {
  allowOnce: "Allow once",
  allowHere: "Allow for this conversation",
  deny: "Deny",
  editArguments: "Arguments (JSON)",
  allowEdited: "Allow with changes",
  notJson: (reason: string) => `Invalid JSON: ${reason}`,
  notAnObject: "Arguments must be a JSON object: {…}",
  noArguments: "No arguments",
  asJson: "View as JSON",
  showAll: "Show everything",
  charactersLeftOut: (count: number) => `${count.toLocaleString("en")} characters not shown`,
  expandFirst: "Show everything before you allow it.",
  asList: "View as list",
  allowedOnce: "Allowed once",
  allowedHere: "Allowed for this conversation",
  allowedEdited: "Allowed with changes",
  denied: "Denied",
  answered: "Answered",
  declined: "Declined",
  expired: "Expired",
  unanswered: "Not answered",
  answeredElsewhere: "You already answered this in another tab or app.",
  requestExpired: "This request has expired.",
  requestGone: "This request is closed.",
  question: "Question",
  yourAnswer: "Your answer",
  giveAnswer: "Submit",
  decline: "Decline",
  optional: "(optional)",
  choose: "Choose…",
  siteHint: "Opens in a new tab. Check the address before entering anything.",
  siteRefused: "This isn’t a web address, so it can’t be opened:",
  siteDone: "Done",
  unsentAnswer: (outcome: string) => `Your answer: ${outcome}.`,
  waitsForClient: (tool: string) => `Waiting for another app to run ${tool}`,
  clientHint: "The app that sent this message runs this tool. Open it there to continue, or deny it here.",
  runByClient: "Run by the app",
};

export type RequestWords = typeof en;

const zh: RequestWords = {
  allowOnce: "仅允许这次",
  allowHere: "本对话内允许",
  deny: "拒绝",
  editArguments: "参数（JSON）",
  allowEdited: "修改后允许",
  notJson: (reason: string) => `JSON 格式有误：${reason}`,
  notAnObject: "参数必须是 JSON 对象：{…}",
  noArguments: "无参数",
  asJson: "查看 JSON",
  showAll: "显示全部内容",
  charactersLeftOut: (count: number) => `省略 ${count.toLocaleString("zh-CN")} 个字符`,
  expandFirst: "请先显示全部内容，再允许。",
  asList: "查看列表",
  allowedOnce: "已允许（仅这次）",
  allowedHere: "已允许（本对话内）",
  allowedEdited: "已修改并允许",
  denied: "已拒绝",
  answered: "已回答",
  declined: "已跳过",
  expired: "已过期",
  unanswered: "未回应",
  answeredElsewhere: "你已在其他页面或应用中回应",
  requestExpired: "该请求已过期",
  requestGone: "该请求已关闭",
  question: "提问",
  yourAnswer: "输入你的回答",
  giveAnswer: "提交",
  decline: "跳过",
  optional: "（选填）",
  choose: "请选择…",
  siteHint: "将在新标签页打开，输入信息前请核对网址",
  siteRefused: "该地址不是网址，无法打开：",
  siteDone: "已完成",
  unsentAnswer: (outcome) => `你的回应：${outcome}。`,
  waitsForClient: (tool) => `等待其他应用运行 ${tool}`,
  clientHint: "该工具由发送此消息的应用运行。请在该应用中继续，或在此处拒绝。",
  runByClient: "已由应用运行",
};

export const requestWords: Record<Language, RequestWords> = { en, zh };

export function useRequestWords(): RequestWords {
  return requestWords[useStore(language)];
}
