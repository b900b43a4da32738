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

/** The rows of a file; a quoted value may have separators, line breaks and doubled quotes in it. */
export function readCsv(text: string): string[][] {
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
    } else if (character !== "\r") value += character;
  }
  if (value || row.length) rows.push([...row, value]);
  return rows;
}

/** What separates most values in the first line. */
function separatorOf(text: string): string {
  const [firstLine = ""] = text.split("\n", 1);
  const countOf = (it: string) => firstLine.split(it).length;
  return SEPARATORS.reduce((best, it) => (countOf(it) > countOf(best) ? it : best));
}
