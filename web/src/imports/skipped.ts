/** What an import skipped and why, in the language of the page. The server says both in English only. */

import { type ImportProblemView } from "@threadkeep/client";

import { type ImportWords, type SkipReason } from "../words/imports";

/** By what the server's sentences have in common; the first that fits. */
const REASONS: readonly [RegExp, SkipReason][] = [
  [/another item in this file has the same id/, "sameId"],
  [/neither `mapping`/, "noConversation"],
  [/of its branches exceed/, "branches"],
  [/storage|quota|allowance/i, "full"],
  [/larger than [\d,]+ bytes|more than [\d,]+ (?:bytes|brackets)/, "tooLarge"],
  [/incomplete|ends before|missing|required field|Expecting|Unterminated|Extra data/, "incomplete"],
  [/form a cycle|share (?:the|an) id|out of order|belongs to|comes before|has not ended|not finished|no summary/, "inconsistent"],
];

export function skipReasonOf(why: string): SkipReason {
  return REASONS.find(([pattern]) => pattern.test(why))?.[1] ?? "unreadable";
}

/** One line: what it was, and why it was skipped. What the server said is added where it may help an expert. */
export function describeSkipped({ what, why }: ImportProblemView, importWords: ImportWords): string {
  const reason = skipReasonOf(why);
  const said = reason === "incomplete" || reason === "inconsistent" || reason === "unreadable" ? importWords.inBrackets(why) : "";
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
