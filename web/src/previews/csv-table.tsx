import { memo, useMemo } from "react";

import { usePreviewWords } from "../words/previews";
import { readCsv } from "./csv";

/** A browser draws so many without a pause that is felt. */
const MOST_CELLS = 20_000;
const MOST_ROWS = 1000;
const MOST_COLUMNS = 100;

/** A file of values as a table; its first line names them. A long or wide one is shown in part. */
export const CsvTable = memo(function CsvTable({ text }: { text: string }) {
  const previewWords = usePreviewWords();
  const { names, rows, rowCount, columnCount } = useMemo(() => shownOf(text), [text]);
  const about = [
    rowCount > rows.length ? previewWords.firstRows(rows.length, rowCount) : previewWords.rows(rowCount),
    ...(columnCount > MOST_COLUMNS ? [previewWords.firstColumns(MOST_COLUMNS, columnCount)] : []),
  ].join(" · ");
  const isCut = rowCount > rows.length || columnCount > MOST_COLUMNS;
  return (
    <div className="markdown csv">
      <p className="hint">{isCut ? previewWords.inPart(about) : about}</p>
      <table>
        <thead>
          <tr>
            {names.map((name, index) => (
              <th key={index} scope="col" dir="auto">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((value, nth) => (
                <td key={nth} dir="auto">
                  {value}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
});

function shownOf(text: string) {
  const { rows: read, count } = readCsv(text, MOST_ROWS + 1);
  const columnCount = Math.max(0, ...read.map((it) => it.length));
  const mostRows = Math.min(MOST_ROWS, Math.floor(MOST_CELLS / Math.min(Math.max(columnCount, 1), MOST_COLUMNS)));
  const [names = [], ...rows] = read.slice(0, mostRows + 1).map((it) => it.slice(0, MOST_COLUMNS));
  return { names, rows, rowCount: Math.max(0, count - 1), columnCount };
}
