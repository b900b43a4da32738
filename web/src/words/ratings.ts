/** What the list of an agent's ratings says. */

import { wordsHook } from "./language";

const en = {
  feedback: "Feedback",
  listHint: "How users rate this agent’s answers. You can read an answer and what led to it only if its user shares it.",
  none: "No ratings yet",
  noneOfThese: "No such ratings",
  which: "Show",
  all: "All ratings",
  up: "Good answers",
  down: "Bad answers",
  good: "Good",
  bad: "Bad",
  notShared: "Not shared",
  own: "Your own",
  noNote: "No note",
  showTurn: "Question and answer",
  question: "Question",
  answer: "Answer",
};

const zh: typeof en = {
  feedback: "反馈",
  listHint: "用户对这个智能体的回答的评价。只有用户分享了的对话，你才能查看。",
  none: "还没有评价",
  noneOfThese: "没有符合条件的评价",
  which: "显示",
  all: "全部评价",
  up: "好评",
  down: "差评",
  good: "好",
  bad: "不好",
  notShared: "未分享",
  own: "你自己的",
  noNote: "没有说明",
  showTurn: "问题和回答",
  question: "问题",
  answer: "回答",
};

export const ratingWords = { en, zh };
export const useRatingWords = wordsHook(ratingWords);
