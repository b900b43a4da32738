/** What the page says to who has to sign in. */

import { wordsHook } from "./language";

const en = {
  signIn: "Sign in",
  signInHint: "Paste your access token.",
  signInLocal: (open: string) =>
    `This server requires its token, for example because it runs programs. In the folder where you started it, run \`${open}\`: it opens this page signed in. Or paste here what \`threadkeep token\` prints there.`,
  signInOperator: "Administrators create one with `threadkeep token --user NAME`. On your own machine: `threadkeep open`",
  signInElsewhere: "Sign in to the application first, then come back.",
  token: "Access token",
  tokenRefused: "This token is invalid or has expired.",
};

const zh: typeof en = {
  signIn: "登录",
  signInHint: "请粘贴访问令牌",
  signInLocal: (open) =>
    `此服务器需要令牌，例如因为它会运行程序。请在启动服务器的文件夹中运行 \`${open}\`，它会打开已登录的页面；或者在此粘贴 \`threadkeep token\` 在那里输出的内容。`,
  signInOperator: "管理员生成令牌：`threadkeep token --user 用户名`；本机使用：`threadkeep open`",
  signInElsewhere: "请先登录应用，再返回此页面。",
  token: "访问令牌",
  tokenRefused: "令牌无效或已过期",
};

export const signInWords = { en, zh };
export const useSignInWords = wordsHook(signInWords);
