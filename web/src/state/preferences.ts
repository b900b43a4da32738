/** The user's preferences, stored in this browser. */

import { Store } from "@threadkeep/client";

import { store } from "../offline/storage";
import { language, type Language } from "../words/language";

export type Theme = "light" | "dark";
/** `system`: as the operating system is, also when that changes. */
export type ThemeChoice = Theme | "system";

const LANGUAGE = "threadkeep.language";
const THEME = "threadkeep.theme";
const SIDEBAR = "threadkeep.sidebar";

/** `--paper` of each theme. */
const PAPER = { light: "#fdfcfa", dark: "#1b1a18" };

function keptLanguage(): Language {
  const kept = localStorage.getItem(LANGUAGE);
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

function keptChoice(): ThemeChoice {
  const kept = localStorage.getItem(THEME);
  return kept === "light" || kept === "dark" ? kept : "system";
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

function shownTheme(): Theme {
  const choice = themeChoice.get();
  return choice === "system" ? (prefersDark.matches ? "dark" : "light") : choice;
}

export const themeChoice = new Store<ThemeChoice>(keptChoice());
/** The theme that is shown. */
export const theme = new Store<Theme>(shownTheme());

export function setLanguage(value: Language): void {
  store(LANGUAGE, value);
  language.set(value);
}

export function setTheme(choice: ThemeChoice): void {
  if (choice === "system") localStorage.removeItem(THEME);
  else store(THEME, choice);
  themeChoice.set(choice);
  theme.set(shownTheme());
}

/** Whether the sidebar is hidden although there is room for it. */
export const sidebarHidden = new Store(localStorage.getItem(SIDEBAR) === "hidden");

export function hideSidebar(hidden: boolean): void {
  if (hidden) store(SIDEBAR, "hidden");
  else localStorage.removeItem(SIDEBAR);
  sidebarHidden.set(hidden);
}

/** Keeps the document in step, from before the first paint on. */
export function applyPreferences(): void {
  const apply = () => {
    document.documentElement.lang = language.get() === "zh" ? "zh-CN" : "en";
    document.documentElement.dataset["theme"] = theme.get();
    // The browser's own bar, also where the theme is not the system's.
    for (const it of document.querySelectorAll<HTMLMetaElement>("meta[name=theme-color]")) it.content = PAPER[theme.get()];
  };
  language.set(keptLanguage());
  language.subscribe(apply);
  theme.subscribe(apply);
  prefersDark.addEventListener("change", () => theme.set(shownTheme()));
  window.addEventListener("storage", followSiblings);
  apply();
}

/** A choice in one tab applies to the others, too. */
function followSiblings({ key }: StorageEvent): void {
  if (key === LANGUAGE) language.set(keptLanguage());
  if (key !== THEME) return;
  themeChoice.set(keptChoice());
  theme.set(shownTheme());
}
