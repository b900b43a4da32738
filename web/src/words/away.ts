/** What the page says to users who are not looking at it, and how it asks whether it may. */

import { wordsHook } from "./language";

const en = {
  title: "Notifications",
  ready: "Your answer is ready.",
  failed: "The answer failed.",
  asks: (message: string) => `Waiting for you: ${message}`,
  offer: "Want to know when an answer is ready? Threadkeep can notify you while this tab is in the background.",
  turnOn: "Turn on notifications",
  noThanks: "No, thanks",
  turnedOn: "Notifications are on. You can turn them off in Settings.",
  later: "OK. You can turn them on in Settings.",
  blocked: "Your browser blocks notifications from this page. Allow them in its site settings, then turn them on here.",
  setting: "Notify me when an answer is ready or waits for me",
  settingHint: "While this tab is in the background",
  unsupported: "This browser can’t show notifications from this page.",
};

const zh: typeof en = {
  title: "通知",
  ready: "回答已完成。",
  failed: "回答失败。",
  asks: (message) => `等待你处理：${message}`,
  offer: "想在回答完成时收到提醒吗？当此标签页在后台时，Threadkeep 可以通知你。",
  turnOn: "开启通知",
  noThanks: "不用了",
  turnedOn: "通知已开启，可在设置中关闭。",
  later: "好的，可随时在设置中开启。",
  blocked: "浏览器阻止了此页面的通知。请先在浏览器的网站设置中允许，再在此处开启。",
  setting: "回答完成或等待我处理时通知我",
  settingHint: "此标签页在后台时",
  unsupported: "此浏览器无法显示本页面的通知。",
};

export const awayWords = { en, zh };
export const useAwayWords = wordsHook(awayWords);
