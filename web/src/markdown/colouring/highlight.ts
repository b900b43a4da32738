/** Colours code. Languages are loaded one by one on demand. */

import { createCssVariablesTheme, createHighlighterCore, type GrammarState, type HighlighterCore, type ThemedToken } from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";

import type { Line, Run } from "./messages";

const LANGUAGES = {
  bash: () => import("shiki/langs/bash.mjs"),
  c: () => import("shiki/langs/c.mjs"),
  cpp: () => import("shiki/langs/cpp.mjs"),
  csharp: () => import("shiki/langs/csharp.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  docker: () => import("shiki/langs/docker.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  ini: () => import("shiki/langs/ini.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  javascript: () => import("shiki/langs/javascript.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  kotlin: () => import("shiki/langs/kotlin.mjs"),
  lua: () => import("shiki/langs/lua.mjs"),
  markdown: () => import("shiki/langs/markdown.mjs"),
  php: () => import("shiki/langs/php.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  r: () => import("shiki/langs/r.mjs"),
  ruby: () => import("shiki/langs/ruby.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  swift: () => import("shiki/langs/swift.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  xml: () => import("shiki/langs/xml.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
} as const;

const ALIASES: Record<string, keyof typeof LANGUAGES> = {
  "c++": "cpp",
  "c#": "csharp",
  cs: "csharp",
  dockerfile: "docker",
  golang: "go",
  js: "javascript",
  jsx: "tsx",
  kt: "kotlin",
  md: "markdown",
  py: "python",
  python3: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  shell: "bash",
  svg: "xml",
  ts: "typescript",
  yml: "yaml",
  zsh: "bash",
};

const theme = createCssVariablesTheme({ name: "css-variables", variablePrefix: "--code-" });
const PLAIN = "var(--code-foreground)";
let highlighter: Promise<HighlighterCore> | null = null;

interface Highlighted {
  lines: Line[];
  /** Where the next line begins. */
  state: GrammarState | undefined;
}

/** Lines of code in colours, from where those before ended; null if the language is unknown. */
export async function highlight(code: string, language: string, state?: GrammarState): Promise<Highlighted | null> {
  const name = ALIASES[language] ?? language;
  if (!Object.hasOwn(LANGUAGES, name)) return null;
  highlighter ??= createHighlighterCore({
    themes: [theme],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
  const ready = await highlighter;
  await ready.loadLanguage(LANGUAGES[name as keyof typeof LANGUAGES]());
  const tokens = ready.codeToTokensBase(code, {
    lang: name,
    theme: theme.name!,
    grammarState: state,
    tokenizeTimeLimit: 0, // a line that was left halfway would colour all that follow wrongly
  });
  return { lines: tokens.map(lineOf), state: ready.getLastGrammarState(tokens) };
}

/** As few pieces as its colours need. */
function lineOf(tokens: readonly ThemedToken[]): Line {
  const runs: Run[] = [];
  for (const { content, color } of tokens) {
    const colour = color === PLAIN ? undefined : color;
    const before = runs.at(-1);
    // A blank looks the same in any colour.
    if (before && (before[1] === colour || !content.trim())) runs[runs.length - 1] = [before[0] + content, before[1]];
    else runs.push(colour === undefined ? [content] : [content, colour]);
  }
  return runs;
}
