/** What a person prefers, kept in this browser. */

import { Store } from "./store";

export type Language = "en" | "zh";
export type Theme = "light" | "dark";

const LANGUAGE = "threadkeep.language";
const THEME = "threadkeep.theme";
const SIDEBAR = "threadkeep.sidebar";

function firstLanguage(): Language {
  const kept = localStorage.getItem(LANGUAGE);
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

function firstTheme(): Theme {
  const kept = localStorage.getItem(THEME);
  if (kept === "light" || kept === "dark") return kept;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export const language = new Store<Language>(firstLanguage());
export const theme = new Store<Theme>(firstTheme());

export function setLanguage(value: Language): void {
  localStorage.setItem(LANGUAGE, value);
  language.set(value);
}

export function setTheme(value: Theme): void {
  localStorage.setItem(THEME, value);
  theme.set(value);
}

/** Whether the sidebar is hidden where there is room for it. */
export const sidebarHidden = new Store(localStorage.getItem(SIDEBAR) === "hidden");

export function hideSidebar(hidden: boolean): void {
  if (hidden) localStorage.setItem(SIDEBAR, "hidden");
  else localStorage.removeItem(SIDEBAR);
  sidebarHidden.set(hidden);
}

/** Keeps the document in step, from before the first paint on. */
export function applyPreferences(): void {
  const apply = () => {
    document.documentElement.lang = language.get() === "zh" ? "zh-CN" : "en";
    document.documentElement.dataset["theme"] = theme.get();
  };
  language.subscribe(apply);
  theme.subscribe(apply);
  apply();
}
