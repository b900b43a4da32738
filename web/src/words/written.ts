/** What the page says of what was written to a conversation that is gone. */

import { useStore } from "@threadkeep/react";

import { language, type Language } from "../state/preferences";

const en = {
  writtenHere: "You had written this here. It hasn’t been sent.",
  useInNew: "Use in a new conversation",
};

export type WrittenWords = typeof en;

const zh: WrittenWords = {
  writtenHere: "你在这里写了以下内容，尚未发送。",
  useInNew: "用于新对话",
};

export const writtenWords: Record<Language, WrittenWords> = { en, zh };

export function useWrittenWords(): WrittenWords {
  return writtenWords[useStore(language)];
}
