/** What can be shown as more than text. */

import type { Kind } from "./sandbox/messages";

/** What a file can be shown as: what a sandbox shows, a table, or a text with headings and lists. */
export type FileKind = Kind | "csv" | "markdown";

const LANGUAGES = new Map<string, Kind>([
  ["html", "html"],
  ["mermaid", "mermaid"],
  ["mmd", "mermaid"],
  ["svg", "svg"],
]);
const STARTS_AS_SVG = /^\s*(<\?xml[^>]*>\s*)?<svg[\s>]/;

/** How to show code of a language; null for code that is only read. */
export function kindOfCode(language: string, code: string): Kind | null {
  const isMarkup = language === "html" || language === "xml";
  return isMarkup && STARTS_AS_SVG.test(code) ? "svg" : (LANGUAGES.get(language) ?? null);
}

const SUFFIXES = new Map<string, FileKind>([
  ...LANGUAGES,
  ["htm", "html"],
  ["csv", "csv"],
  ["tsv", "csv"],
  ["md", "markdown"],
  ["markdown", "markdown"],
]);
const MOST_BYTES = 10_000_000;

/** How to show a file; null for one that is only saved. */
export function kindOfFile(name: string, size: number): FileKind | null {
  if (size > MOST_BYTES) return null;
  return SUFFIXES.get(/\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? "") ?? null;
}
