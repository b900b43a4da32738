import { Store } from "@threadkeep/client";

export type Language = "en" | "zh";

/** The language that the page speaks; `state/preferences.ts` keeps the user's choice. */
export const language = new Store<Language>("en");
