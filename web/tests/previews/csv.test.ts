import { expect, it } from "vitest";

import { csvOf, readCsv } from "../../src/previews/csv";

function table(...rows: string[][]): HTMLTableElement {
  const made = document.createElement("table");
  for (const row of rows) for (const [at, text] of row.entries()) (at ? made.rows[made.rows.length - 1]! : made.insertRow()).insertCell().innerHTML = text;
  return made;
}

it("quotes what would end a cell or a row", () => {
  expect(csvOf(table(["City", "Note"], ["Porto, PT", 'the "old" town'], ["Łódź", ""]))).toBe(
    'City,Note\r\n"Porto, PT","the ""old"" town"\r\nŁódź,\r\n',
  );
});

it("leaves out marks of sources", () => {
  expect(csvOf(table(["3 m <button class='citation'>[1]</button>"]))).toBe("3 m\r\n");
});

it.each([
  ["=HYPERLINK(1)", "'=HYPERLINK(1)"],
  ["@SUM(A1)", "'@SUM(A1)"],
  ["+cmd", "'+cmd"],
  ["-1+2", "'-1+2"],
  ["-12.5", "-12.5"],
  ["+3 %", "+3 %"],
])("writes %s so that no spreadsheet runs it", (text, written) => {
  expect(csvOf(table([text]))).toBe(`${written}\r\n`);
});

it.each([
  ["a,b\r\n1,2\r\n", [["a", "b"], ["1", "2"]]],
  ['name;note\n"Lang; Eva";"said ""no""\ntwice"', [["name", "note"], ["Lang; Eva", 'said "no"\ntwice']]],
  ["\uFEFFa\tb\n\t2", [["a", "b"], ["", "2"]]],
  ["", []],
  ['"open,\n1', [["open,\n1"]]],
])("reads %j", (text, rows) => {
  expect(readCsv(text)).toEqual({ rows, count: rows.length });
});

it.each([
  "a,b\n1,2\n3,4\n5,6\n",
  "a,b\n1,2\n3,4\n5,6",
  'a,b\n1,2\n"3\n\n","4 ""\n"""\n5 "\n6',
  "a\n\n\n",
  "a\n",
])("counts the rows of %j that it doesn't read", (text) => {
  const all = readCsv(text);
  for (let most = 1; most <= 5; most++) expect(readCsv(text, most)).toEqual({ rows: all.rows.slice(0, most), count: all.count });
});
