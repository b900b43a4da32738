import { afterEach, expect, it } from "vitest";

import { applyPreferences, setTheme, theme, themeChoice } from "../../src/state/preferences";

afterEach(() => setTheme("system"));

it("keeps the chosen theme, and nothing where the system chooses", () => {
  const bar = document.head.appendChild(document.createElement("meta"));
  bar.name = "theme-color";
  applyPreferences();
  setTheme("dark");
  expect([theme.get(), localStorage.getItem("threadkeep.theme"), bar.content]).toEqual(["dark", "dark", "#1b1a18"]);
  setTheme("system");
  expect([themeChoice.get(), theme.get(), localStorage.getItem("threadkeep.theme"), bar.content]).toEqual([
    "system",
    "light",
    null,
    "#fdfcfa",
  ]);
  bar.remove();
});
