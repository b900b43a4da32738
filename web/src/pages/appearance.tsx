import { useStore } from "@threadkeep/react";

import { setLanguage, setTheme, theme } from "../state/preferences";
import { useWords } from "../words";
import { language, type Language } from "../words/language";

/** Language, and light or dark. */
export function Appearance() {
  const words = useWords();
  const isDark = useStore(theme) === "dark";
  return (
    <div className="appearance">
      <select
        aria-label={words.language}
        value={useStore(language)}
        onChange={(event) => setLanguage(event.target.value as Language)}
      >
        <option value="en">English</option>
        <option value="zh">中文</option>
      </select>
      <button
        type="button"
        role="switch"
        aria-checked={isDark}
        className="switch"
        onClick={() => setTheme(isDark ? "light" : "dark")}
      >
        <span>{words.darkMode}</span>
        <i aria-hidden />
      </button>
    </div>
  );
}
