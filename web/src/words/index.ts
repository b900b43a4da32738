import { language, type Language } from "../state/preferences";
import { useStore } from "../state/store";
import { en, type Words } from "./en";
import { zh } from "./zh";

const BY_LANGUAGE: Record<Language, Words> = { en, zh };

/** What the page says, in the language that was chosen. */
export function useWords(): Words {
  return BY_LANGUAGE[useStore(language)];
}

export type { Words };
