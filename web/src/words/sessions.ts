/** What the page says of the browsers in which a user is signed in. */

import { wordsHook } from "./language";

const en = {
  title: "Where you’re signed in",
  intro: "Sign out where you no longer use Threadkeep, or don’t recognize the device. What is open there stops within seconds.",
  here: "This browser",
  on: (browser: string, system: string) => `${browser} on ${system}`,
  unknownBrowser: "Unknown browser",
  unknownSystem: "an unknown system",
  byInvitation: "Signed in with an invitation",
  by: (provider: string) => `Signed in with ${provider}`,
  since: (time: string) => `since ${time}`,
  lastUsed: (time: string) => `last used ${time}`,
  justNow: "last used just now",
  signOutThere: (device: string) => `Sign out ${device}`,
  signedOut: (device: string) => `Signed out ${device}.`,
  otherBrowser: "Sign in on another device",
  linkTitle: "Link for another device",
  linkText: (time: string) =>
    `Open this link in the other browser by ${time}. It works once and signs in as you, so send it to nobody else. You stay signed in here. It can’t be shown again.`,
  copyLink: "Copy link",
  done: "Done",
  everywhere: "Sign out everywhere",
  everywhereText: "This signs you out of all browsers, including this one. API keys and access tokens stay valid.",
};

export type SessionWords = typeof en;

const zh: SessionWords = {
  title: "已登录的位置",
  intro: "如果不再使用或不认识某个设备，请将其退出登录。那里打开的内容会在数秒内断开。",
  here: "此浏览器",
  on: (browser, system) => `${system} 上的 ${browser}`,
  unknownBrowser: "未知浏览器",
  unknownSystem: "未知系统",
  byInvitation: "通过邀请登录",
  by: (provider) => `通过 ${provider} 登录`,
  since: (time) => `登录于 ${time}`,
  lastUsed: (time) => `上次使用：${time}`,
  justNow: "刚刚使用过",
  signOutThere: (device) => `退出 ${device} 的登录`,
  signedOut: (device) => `已退出 ${device} 的登录。`,
  otherBrowser: "在其他设备上登录",
  linkTitle: "用于其他设备的链接",
  linkText: (time) => `请在 ${time} 前用另一个浏览器打开此链接。链接只能使用一次，并以你的身份登录，请勿发给他人。你在此处的登录会保留。链接之后无法再次显示。`,
  copyLink: "复制链接",
  done: "完成",
  everywhere: "全部退出登录",
  everywhereText: "所有浏览器都会退出登录，包括此浏览器。API 密钥和访问令牌仍然有效。",
};

export const sessionWords = { en, zh };
export const useSessionWords = wordsHook(sessionWords);
