import { Store } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";

import { en, type Words } from "./en";
import { language } from "./language";

/** The words that the page shows now. English comes with the page; another language is loaded when chosen. */
const shown = new Store<Words>(en);

/** Loads the words of the chosen language; if that fails, the page keeps the current ones. */
export async function loadWords(): Promise<void> {
  const wanted = language.get();
  const words = wanted === "zh" ? (await import("./zh")).zh : en;
  if (language.get() === wanted) shown.set(words);
}

/** Shows them whenever the user chooses another language. */
export function followLanguage(): void {
  language.subscribe(() => void loadWords().catch(() => {}));
}

/** What the page says, in the chosen language. */
export function useWords(): Words {
  return useStore(shown);
}

export type { Words };
