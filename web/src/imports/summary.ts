/** What came of an import, in words. */

import { type ImportView } from "@threadkeep/client";

import { type ImportWords } from "../words/imports";

export function summaryOf(run: ImportView, importWords: ImportWords, locale: string): string {
  const what = importWords.conversations(run.imported, run.imported.toLocaleString(locale));
  switch (run.status) {
    case "STOPPED":
      return importWords.stopped(what);
    case "INTERRUPTED":
      return importWords.interrupted(what);
    case "FAILED":
      return importWords.failed;
    default:
      return importWords.imported(what);
  }
}

/** The numbers beside it that aren't 0. */
export function countsOf(run: ImportView, importWords: ImportWords, locale: string): string[] {
  const counts: [number, (count: number, shown: string) => string][] = [
    [run.alreadyThere, importWords.there],
    [run.leftOut, importWords.leftOut],
    [run.empty, importWords.empty],
    [run.messages, importWords.messages],
    [run.files, importWords.files],
  ];
  return counts.filter(([count]) => count > 0).map(([count, say]) => say(count, count.toLocaleString(locale)));
}
