/** Tables as files for spreadsheets, and such files as tables. */

/** Text that a spreadsheet would take for a formula, and run. */
const FORMULA = /^[=@\t\r]|^[+-](?![\d.,\s]*%?$)/;

export function csvOf(table: HTMLTableElement): string {
  const lines = [...table.rows].map((row) => [...row.cells].map((cell) => written(textOf(cell))).join(","));
  return lines.join("\r\n") + "\r\n";
}

function textOf(cell: HTMLElement): string {
  const copy = cell.cloneNode(true) as HTMLElement;
  copy.querySelectorAll(".citation").forEach((it) => it.remove());
  return copy.textContent.trim();
}

function written(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

const SEPARATORS = [",", ";", "\t", "|"];

export interface CsvRows {
  /** The first ones. */
  rows: string[][];
  /** How many there are in all. */
  count: number;
}

/** The first rows of a file; a quoted value may have separators, line breaks and doubled quotes in it. */
export function readCsv(text: string, most = Infinity): CsvRows {
  const whole = text.replace(/^\uFEFF/, "");
  const separator = separatorOf(whole);
  const rows: string[][] = [];
  let row: string[] = [];
  let value = "";
  let isQuoted = false;
  for (let at = 0; at < whole.length; at++) {
    const character = whole[at]!;
    if (isQuoted) {
      if (character !== '"') value += character;
      else if (whole[at + 1] === '"') value += whole[++at];
      else isQuoted = false;
    } else if (character === '"' && !value) isQuoted = true;
    else if (character === separator || character === "\n") {
      row.push(value);
      value = "";
      if (character === separator) continue;
      rows.push(row);
      row = [];
      if (rows.length === most) return { rows, count: most + countRows(whole, at + 1, separator) };
    } else if (character !== "\r") value += character;
  }
  if (value || row.length) rows.push([...row, value]);
  return { rows, count: rows.length };
}

/** How many rows begin at a place or after it. Makes no values of them: there may be millions. */
function countRows(text: string, from: number, separator: string): number {
  const [quote, newline, between] = ['"', "\n", separator].map((it) => it.charCodeAt(0));
  let count = 0;
  let isQuoted = false;
  let startsValue = true;
  let hasRest = false;
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    hasRest = true;
    if (isQuoted && code === quote) {
      if (text.charCodeAt(at + 1) === quote) at++;
      else isQuoted = false;
    } else if (isQuoted) continue;
    else if (code === quote && startsValue) isQuoted = true;
    else if (code === newline) {
      count++;
      hasRest = false;
    }
    startsValue = !isQuoted && (code === newline || code === between);
  }
  return count + (hasRest ? 1 : 0);
}

/** What separates most values in the first line. */
function separatorOf(text: string): string {
  const [firstLine = ""] = text.split("\n", 1);
  const countOf = (it: string) => firstLine.split(it).length;
  return SEPARATORS.reduce((best, it) => (countOf(it) > countOf(best) ? it : best));
}
