import { expect, it, vi } from "vitest";

import * as csv from "../../src/previews/csv";
import { CsvTable } from "../../src/previews/csv-table";
import { draw } from "../draw";

const lines = (rows: number, columns: number) =>
  Array.from({ length: rows }, () => Array.from({ length: columns }, (_, at) => `v${at}`).join(",")).join("\n");
const sizeOf = (place: HTMLElement) => [place.querySelectorAll("tbody tr").length, place.querySelectorAll("thead th").length];

it("shows a file as large as it is, and reads it once", () => {
  const read = vi.spyOn(csv, "readCsv");
  const text = lines(3, 2);
  const drawn = draw(<CsvTable text={text} />);
  drawn.again(<CsvTable text={text} />);
  expect(read).toHaveBeenCalledOnce();
  expect([sizeOf(drawn.place), drawn.find(".hint").textContent]).toEqual([[2, 2], "2 rows"]);
});

it("shows a part of a long or wide one, and says of how much", () => {
  const long = draw(<CsvTable text={lines(5001, 3)} />);
  expect([sizeOf(long.place), long.find(".hint").textContent]).toEqual([[1000, 3], "First 1,000 of 5,000 rows. Download the file for the rest."]);
  const wide = draw(<CsvTable text={lines(301, 150)} />);
  expect([sizeOf(wide.place), wide.find(".hint").textContent]).toEqual([
    [200, 100],
    "First 200 of 300 rows · first 100 of 150 columns. Download the file for the rest.",
  ]);
});
