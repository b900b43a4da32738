/** What the Guide's crash says; it loads with it. */

import { wordsHook } from "./language";

const en = {
  there: "Server connected",
  gone: "Server gone · resuming…",
  back: "Server back · steps kept, text written again",
};

const zh: typeof en = {
  there: "服务器已连接",
  gone: "服务器中断 · 正在恢复…",
  back: "服务器已恢复 · 步骤已保留，文字重新生成",
};

export const stageWords = { en, zh };
export const useStageWords = wordsHook(stageWords);
