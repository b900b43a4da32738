import { Store } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";

export type Language = "en" | "zh";

/** The language that the page speaks; `state/preferences.ts` keeps the user's choice. */
export const language = new Store<Language>("en");

/** A hook with the texts of a part of the page that loads with them, in the chosen language. */
export function wordsHook<Words>(byLanguage: Record<Language, Words>): () => Words {
  return () => byLanguage[useStore(language)];
}
