/** What the page says of what everybody had before people signed in. */

import { type MovableView } from "@threadkeep/client";

import { grouped } from "./format";
import { wordsHook } from "./language";

const en = {
  title: "From before people signed in",
  text: (left: MovableView) => {
    const them = left.conversations + left.agents + left.briefings + left.memories === 1 ? "it" : "them";
    return `This server still has ${listed(left, "nothing")} from when everyone was one user. Nobody can see ${them} now. Move ${them} to your account?`;
  },
  move: "Move to me",
  notNow: "Not now",
  moved: (moved: MovableView) => `Moved ${listed(moved, "nothing: somebody else was quicker")}.`,
};

function listed({ conversations, agents, briefings, memories }: MovableView, nothing: string): string {
  const parts = [
    counted(conversations, "conversation", "conversations"),
    counted(agents, "agent", "agents"),
    counted(briefings, "briefing", "briefings"),
    counted(memories, "memory", "memories"),
  ].filter((it) => it !== "");
  return parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : (parts[0] ?? nothing);
}

function counted(count: number, one: string, several: string): string {
  return count ? `${grouped(count)} ${count === 1 ? one : several}` : "";
}

const zh: typeof en = {
  title: "启用登录之前的内容",
  text: (left) => `启用登录之前，所有人共用一个用户。服务器上还有当时的${listedInChinese(left)}，现在没有人能看到。是否移到你的账户？`,
  move: "移到我的账户",
  notNow: "以后再说",
  moved: (moved) => `已移动${listedInChinese(moved)}。`,
};

function listedInChinese({ conversations, agents, briefings, memories }: MovableView): string {
  const counts: [number, string][] = [
    [conversations, "个对话"],
    [agents, "个智能体"],
    [briefings, "份简报"],
    [memories, "条记忆"],
  ];
  return counts.map(([count, noun]) => (count ? ` ${grouped(count)} ${noun}` : "")).filter(Boolean).join("、") || " 0 项";
}

export const localDataWords = { en, zh };
export const useLocalDataWords = wordsHook(localDataWords);
