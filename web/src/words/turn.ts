/** What the details of a turn say. They are loaded when the user opens them, and so are their words. */

import { useStore } from "@threadkeep/react";

import { language, type Language } from "./language";
import { grouped } from "./format";

const en = {
  costNotKnown: "Not known",
  noPriceFor: (models: string) => `(no price for ${models})`,
  cacheReadTokens: "Cached input tokens",
  cacheWriteTokens: "Tokens written to cache",
  turnDetails: "Turn details",
  copyLink: "Copy link",
  turnNotFound: "Turn not found. It may have been deleted, or it belongs to someone else.",
  turnStatus: {
    RUNNING: "Running",
    WAITING: "Waiting for you",
    COMPLETED: "Completed",
    FAILED: "Failed",
    CANCELLED: "Stopped",
  },
  duration: "Duration",
  started: "Started",
  live: "Live",
  liveHint: "You can replay this turn when it has ended.",

  replay: "Replay",
  play: "Play",
  pause: "Pause",
  playAgain: "Play again",
  playKeys: "Space to play or pause · ← → to scrub",
  position: "Position",
  positionText: (at: string, all: string, step: string) => `${at} of ${all}, ${step}`,
  speed: "Speed",
  instant: "Instant",
  idleShortened: (time: string) => `Idle time shortened by ${time}`,
  madeFromReply: "The event log of this turn has expired. This replay is built from the stored answer.",
  noEvents: "The event log of this turn has expired.",
  replyThen: "Answer at this moment",
  nothingYet: "Nothing yet",
  beginning: "Start",
  ended: "Finished",

  timeline: "Timeline",
  goToStep: (title: string) => `Go to ${title}`,
  waitedForYou: "Waiting for you",
  resumed: "Resumed after an interruption",
  supersededCall: (title: string) => `${title} (interrupted)`,
  modelCall: (index: number) => `Model call ${index}`,

  toolCalls: "Tool calls",

  tokensTitle: "Tokens",
  call: "Model call",
  input: "Input",
  cached: "Cached",
  output: "Output",
  time: "Time",
  all: "Total",

  context: "Model input",
  contextMessages: (count: number) => (count === 1 ? "1 message" : `${grouped(count)} messages`),
  contextDropped: (count: number) => `${grouped(count)} omitted to fit`,
  promptParts: { systemPrompt: "Agent instructions", role: "Role" } as Record<string, string>,
  contextTools: "Tools",
  contextFiles: "Files",
  tokenEstimate: "Estimated tokens",
  prefixShare: "Same as previous request",
  fromCache: "Read from cache",
  cachedOf: (cached: string, all: string) => `${cached} of ${all} input tokens`,
  messagesSent: "Messages",
  messageGone: "This message is no longer stored.",
  you: "You",
  assistant: "Agent",
};

const zh: typeof en = {
  costNotKnown: "未知",
  noPriceFor: (models: string) => `（${models} 没有价格）`,
  cacheReadTokens: "缓存命中 token",
  cacheWriteTokens: "缓存写入 token",
  turnDetails: "本轮详情",
  copyLink: "复制链接",
  turnNotFound: "找不到这一轮对话，可能已被删除，或你无权查看。",
  turnStatus: {
    RUNNING: "进行中",
    WAITING: "等待你的回应",
    COMPLETED: "已完成",
    FAILED: "失败",
    CANCELLED: "已停止",
  },
  duration: "耗时",
  started: "开始时间",
  live: "实时",
  liveHint: "本轮结束后可以回放。",

  replay: "回放",
  play: "播放",
  pause: "暂停",
  playAgain: "重新播放",
  playKeys: "空格键播放或暂停 · ← → 调整进度",
  position: "进度",
  positionText: (at, all, step) => `${at} / ${all}，${step}`,
  speed: "倍速",
  instant: "立即完成",
  idleShortened: (time) => `已跳过 ${time} 空闲时间`,
  madeFromReply: "本轮的事件记录已过期，回放根据保存的回答生成。",
  noEvents: "本轮的事件记录已过期。",
  replyThen: "此刻的回答",
  nothingYet: "暂无内容",
  beginning: "开始",
  ended: "结束",

  timeline: "时间线",
  goToStep: (title) => `跳到${title}`,
  resumed: "中断后继续",
  waitedForYou: "等待回应",
  supersededCall: (title) => `${title}（已中断）`,
  modelCall: (index) => `第 ${index} 次模型调用`,

  toolCalls: "工具调用",

  tokensTitle: "Token 用量",
  call: "模型调用",
  input: "输入",
  cached: "缓存",
  output: "输出",
  time: "用时",
  all: "合计",

  context: "模型输入",
  contextMessages: (count) => `${grouped(count)} 条消息`,
  contextDropped: (count) => `超长省略 ${grouped(count)} 条`,
  promptParts: { systemPrompt: "智能体指令", role: "角色" },
  contextTools: "工具",
  contextFiles: "文件",
  tokenEstimate: "预估 token",
  prefixShare: "与上次请求相同的部分",
  fromCache: "命中缓存",
  cachedOf: (cached, all) => `输入 token ${all}，其中 ${cached} 来自缓存`,
  messagesSent: "消息",
  messageGone: "这条消息已不再保存。",
  you: "你",
  assistant: "智能体",
};

const BY_LANGUAGE: Record<Language, typeof en> = { en, zh };

export type TurnWords = typeof en;
export const turnWords = BY_LANGUAGE;

export function useTurnWords(): TurnWords {
  return BY_LANGUAGE[useStore(language)];
}
