/** What the page says to who has to sign in. */

import { wordsHook } from "./language";

const en = {
  signIn: "Sign in",
  continueWith: (provider: string) => `Continue with ${provider}`,
  withInvitation: "Have an invitation? Open its link in this browser. It works once; an administrator can make you a new one.",
  byInvitation: "You need an invitation: open its link in this browser. If you have none, or it no longer works, ask an administrator for a new one.",
  developer: "Developer",
  signInHint: "Paste your access token.",
  signInLocal: (open: string) =>
    `This server needs its access token. Run \`${open}\` where you started it, or paste the output of \`threadkeep token\`.`,
  signInOperator:
    "It comes from your organization’s sign-in, or from an administrator: on the server, `threadkeep token --user NAME` prints one. With `THREADKEEP_INVITATIONS=on`, people sign in without tokens.",
  signInElsewhere: "Sign in to the application first, then come back.",
  token: "Access token",
  tokenRefused: "This token is invalid or has expired.",
  /** Why the user has to sign in. */
  ended: {
    session: "You were signed out, or your sign-in has expired. Sign in again.",
    suspendedByAdmin: "Your account is suspended. Only an administrator can lift this. Your conversations are kept.",
    suspendedByProvider:
      "Your account is suspended, because your sign-in provider no longer lets you in here. Sign in with it again; if that doesn’t work, ask an administrator. Your conversations are kept.",
  },
  aProvider: "the provider",
  /** Why a sign-in with a provider came to nothing. */
  problems: {
    expired: () => "This sign-in took too long, or began in another browser. Start again.",
    other_provider: () => "Another provider responded than the one you chose. Start again.",
    denied: (provider: string) => `You weren’t signed in: ${provider} or you declined.`,
    unreachable: (provider: string) => `Can’t reach ${provider} right now. Try again in a moment.`,
    invalid: (provider: string) => `The response of ${provider} isn’t valid. Tell an administrator: the server’s log says why.`,
    not_allowed: (provider: string) => `Your account at ${provider} isn’t one that may sign in here. Ask an administrator.`,
    no_email: (provider: string) => `${capital(provider)} doesn’t confirm an email address of yours, which is needed here. Ask an administrator.`,
    suspended: () => "An administrator has suspended your account. Your conversations are kept.",
    other: (provider: string) => `Signing in with ${provider} didn’t work. Try again, or tell an administrator.`,
  },
};

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const zh: typeof en = {
  signIn: "登录",
  continueWith: (provider) => `使用 ${provider} 继续`,
  withInvitation: "收到了邀请？请在此浏览器中打开邀请链接。链接只能使用一次，管理员可以为你重新生成。",
  byInvitation: "登录需要邀请：请在此浏览器中打开邀请链接。如果没有链接或链接已失效，请向管理员索取。",
  developer: "开发者",
  signInHint: "请粘贴访问令牌。",
  signInLocal: (open) =>
    `此服务器需要访问令牌。请在启动服务器的文件夹中运行 \`${open}\`，或在此粘贴 \`threadkeep token\` 的输出。`,
  signInOperator:
    "令牌来自你所在组织的登录系统，或由管理员提供：在服务器上运行 `threadkeep token --user 用户名`。设置 `THREADKEEP_INVITATIONS=on` 后，无需令牌即可登录。",
  signInElsewhere: "请先登录应用，再返回此页面。",
  token: "访问令牌",
  tokenRefused: "令牌无效或已过期。",
  ended: {
    session: "你已退出登录，或登录已过期。请重新登录。",
    suspendedByAdmin: "你的账户已停用，只有管理员可以恢复。你的对话会保留。",
    suspendedByProvider: "你的账户已停用，因为登录服务不再允许你在此登录。请用它重新登录；如果仍无法登录，请联系管理员。你的对话会保留。",
  },
  aProvider: "登录服务",
  problems: {
    expired: () => "登录超时，或是在另一个浏览器中开始的。请重新登录。",
    other_provider: () => "响应的不是你选择的登录服务。请重新登录。",
    denied: (provider) => `未能登录：你或${spaced(provider)}拒绝了请求。`,
    unreachable: (provider) => `暂时无法连接${spaced(provider)}。请稍后再试。`,
    invalid: (provider) => `${provider} 的响应无效。请告知管理员，服务器日志中有原因。`,
    not_allowed: (provider) => `你在${spaced(provider)}的账户不允许在此登录。请联系管理员。`,
    no_email: (provider) => `${provider} 没有确认你的邮箱地址，而此处需要它。请联系管理员。`,
    suspended: () => "管理员已停用你的账户。你的对话会保留。",
    other: (provider) => `使用 ${provider} 登录未成功。请重试，或告知管理员。`,
  },
};

/** Chinese puts a space around Latin letters only. */
function spaced(name: string): string {
  return /^[\x20-\x7e]/.test(name) ? ` ${name} ` : name;
}

export const signInWords = { en, zh };
export const useSignInWords = wordsHook(signInWords);
