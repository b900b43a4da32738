/** The texts of an opened source; they load with it. */

import { wordsHook } from "./language";

const en = {
  cited: "Cited passage",
  othersFound: "Other passages found in this document",
  document: "Document",
  earlier: "Show earlier",
  later: "Show more",
};

const zh: typeof en = {
  cited: "引用段落",
  othersFound: "在该文档中找到的其他段落",
  document: "文档内容",
  earlier: "显示前文",
  later: "显示后文",
};

export const sourceWords = { en, zh };
export const useSourceWords = wordsHook(sourceWords);
