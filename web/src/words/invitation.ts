/** What the page says to who opens an invitation's link. */

import { wordsHook } from "./language";

const en = {
  title: "You’re invited",
  ownTitle: "Sign in on this device",
  as: (name: string, isAdmin: boolean) => `This link signs you in as \`${name}\`${isAdmin ? ", an administrator" : ""}.`,
  invitedBy: (name: string) => `The invitation is from ${name}.`,
  until: (time: string) => `It works once, until ${time}.`,
  endsOthers: "If this account is signed in elsewhere, it will be signed out there.",
  endsNone: "Your other browsers stay signed in.",
  accept: (name: string) => `Continue as ${name}`,
  otherHere: (other: string) => `This browser is signed in as \`${other}\`.`,
  switchText: (other: string, drafts: number) =>
    `If you continue, ${other} will be signed out here${drafts ? `, and ${drafts === 1 ? "a draft" : `${drafts} drafts`} that ${other} has not sent will be deleted` : ""}.`,
  switch: (other: string, name: string) => `Sign ${other} out and continue as ${name}`,
  stay: (other: string) => `Stay signed in as ${other}`,
  sameHere: (name: string) => `You’re already signed in as \`${name}\`. You don’t need this link here.`,
  open: "Open Threadkeep",
  acceptAgain: "Use the link anyway",
  useless: "This invitation doesn’t work",
  problems: {
    INVITATION_ENDED: "It was used already, or has expired. Ask the person who invited you for a new link. If somebody else may have used it, tell an administrator.",
    INVITATION_NOT_FOUND: "It was withdrawn or replaced by a newer one, or the link isn’t complete. Ask the person who invited you for a new link.",
    RATE_LIMITED: "Too many links that don’t work were opened from here. Try again in a minute.",
  },
  toSignIn: "Sign in another way",
};

const zh: typeof en = {
  title: "你收到了邀请",
  ownTitle: "在此设备上登录",
  as: (name, isAdmin) => `通过此链接，你将以${isAdmin ? "管理员" : ""} \`${name}\` 的身份登录。`,
  invitedBy: (name) => `${name} 邀请了你。`,
  until: (time) => `链接只能使用一次，${time} 前有效。`,
  endsOthers: "此账户在其他浏览器中的登录会被退出。",
  endsNone: "你在其他浏览器中的登录会保留。",
  accept: (name) => `以 ${name} 的身份继续`,
  otherHere: (other) => `此浏览器已登录为 \`${other}\`。`,
  switchText: (other, drafts) => `如果继续，${other} 会在此浏览器退出登录${drafts ? `，${drafts} 份未发送的草稿会被删除` : ""}。`,
  switch: (other, name) => `退出 ${other}，以 ${name} 的身份继续`,
  stay: (other) => `保持 ${other} 的登录`,
  sameHere: (name) => `你已登录为 \`${name}\`，在此无需使用该链接。`,
  open: "打开 Threadkeep",
  acceptAgain: "仍然使用此链接",
  useless: "此邀请无效",
  problems: {
    INVITATION_ENDED: "邀请已被使用或已过期，请向邀请你的人索取新的链接。如果可能被他人使用，请告知管理员。",
    INVITATION_NOT_FOUND: "邀请已被撤回或由更新的邀请取代，或者链接不完整。请向邀请你的人索取新的链接。",
    RATE_LIMITED: "从此处打开的无效链接过多。请一分钟后再试。",
  },
  toSignIn: "以其他方式登录",
};

export const invitationWords = { en, zh };
export const useInvitationWords = wordsHook(invitationWords);
