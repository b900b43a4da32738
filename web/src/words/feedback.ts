/** What judging an answer says. Loaded with the first answer. */

import { wordsHook } from "./language";

const en = {
  goodAnswer: "Good answer",
  badAnswer: "Bad answer",
  tryModel: "Try with another model",
  shareHere: "Share up to here",
  moreActions: "More for this answer",
  feedback: "Feedback",
  rated: "Rated. You can add a note.",
  whatWasGood: "What was good about it? (optional)",
  whatWasBad: "What was wrong with it? (optional)",
  shareText: "Let the agent’s owner read this answer and what led to it",
  shareHint:
    "The owner can then read everything that the model received for this answer: your message, earlier messages, files, tool results and instructions, and the answer. They can run it again with other models.",
  noShareHint: "The owner sees your rating and your note, without your name. They can’t read the conversation.",
  send: "Send",
  thanks: "Thanks for your feedback.",
};

const zh: typeof en = {
  goodAnswer: "答得好",
  badAnswer: "答得不好",
  tryModel: "换个模型试试",
  shareHere: "分享到此处",
  moreActions: "此回答的更多操作",
  feedback: "反馈",
  rated: "已评价，你可以补充说明。",
  whatWasGood: "好在哪里？（选填）",
  whatWasBad: "哪里不好？（选填）",
  shareText: "允许智能体的所有者查看这个回答及其由来",
  shareHint: "所有者可以看到模型为这个回答收到的全部内容：你的消息、之前的消息、文件、工具结果、指令，以及回答本身，并可以用其他模型重新运行。",
  noShareHint: "所有者只能看到你的评价和说明，看不到你的名字，也看不到对话内容。",
  send: "发送",
  thanks: "感谢你的反馈。",
};

export const feedbackWords = { en, zh };
export const useFeedbackWords = wordsHook(feedbackWords);
