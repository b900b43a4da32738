/** What the page says without its server, and about what it keeps on the device. */

import { wordsHook } from "./language";

const en = {
  title: "Offline use",
  offline: "Offline",
  serverAway: "No connection",
  showsCopies: "showing what this device has",
  showsNothing: "what you send waits here and is sent later",
  back: "Back online",
  keep: "Keep conversations on this device",
  keepHint: (count: number) =>
    `The ${count} you opened last, to read without a connection. Anyone who can open this browser can read them until you sign out or turn this off: leave it off on a shared computer.`,
  nowKept: "From now on, this device keeps the conversations you open. You can turn it off in Settings.",
  nowDeleted: "Deleted from this device.",
  kept: (count: number, size: string) => `On this device now: ${count === 1 ? "1 conversation" : `${count} conversations`}, ${size}.`,
  turnedOff: "Your administrator has turned this off.",
  unsupported: "This browser can’t keep anything for this page.",
  sendUnknown: (count: number) => (count === 1 ? "Send the message you wrote before the update?" : `Send the ${count} messages you wrote before the update?`),
  sendUnknownText:
    "They haven’t been sent, and it isn’t known whether they were meant for this server or another one at this address. If you cancel, their text goes back to the composer.",
  send: "Send",
};

export type OfflineWords = typeof en;

const zh: OfflineWords = {
  title: "离线使用",
  offline: "离线",
  serverAway: "连接中断",
  showsCopies: "正在显示此设备上保存的内容",
  showsNothing: "发送的内容会保留在这里，稍后自动发送",
  back: "已恢复连接",
  keep: "在此设备上保留对话",
  keepHint: (count) => `保留最近打开的 ${count} 个对话，没有网络时也能阅读。在你退出登录或关闭此选项之前，任何能打开此浏览器的人都能看到它们；在共用电脑上请保持关闭。`,
  nowKept: "从现在起，此设备会保留你打开的对话。可在设置中关闭。",
  nowDeleted: "已从此设备删除。",
  kept: (count, size) => `此设备目前保存了 ${count} 个对话，共 ${size}。`,
  turnedOff: "此服务器的管理员已关闭该功能。",
  unsupported: "此浏览器无法为本页面保存任何内容。",
  sendUnknown: (count) => `发送更新前写好的 ${count} 条消息？`,
  sendUnknownText: "这些消息尚未发送，也无法确定是写给此服务器，还是写给同一地址上的另一台服务器。如果取消，文字会回到输入框。",
  send: "发送",
};

export const offlineWords = { en, zh };
export const useOfflineWords = wordsHook(offlineWords);
