/** What an import skipped and why, in the language of the page. */

import { type ImportProblemView } from "@threadkeep/client";

import { type ImportWords } from "../words/imports";

/** One line: what it was, and why it was skipped. What the server said is added where it may help an expert. */
export function describeSkipped({ what, why, reason }: ImportProblemView, importWords: ImportWords): string {
  const said = reason === "incomplete" || reason === "unreadable" ? importWords.inBrackets(why) : "";
  return importWords.skippedLine(nameOf(what, importWords), importWords.skipReasons[reason]) + said;
}

function nameOf(what: string, importWords: ImportWords): string {
  const [, number, , title = ""] = /^conversation (\d+) (?:(['"])(.*)\2 )?\(at byte [\d,]+\)$/s.exec(what) ?? [];
  if (number) return importWords.nth(Number(number), title);
  const [, line] = /^line (\d+)$/.exec(what) ?? [];
  if (line) return importWords.line(Number(line));
  const [, name = what] = /^conversation '?(.+?)'?$/s.exec(what) ?? [];
  return what === "the file" ? importWords.theFile : importWords.titled(name);
}
