import { usePreviewWords } from "../words/previews";
import { readCsv } from "./csv";

const MOST_ROWS = 1000;

/** A file of values as a table; its first line names them. */
export function CsvTable({ text }: { text: string }) {
  const previewWords = usePreviewWords();
  const [names = [], ...rows] = readCsv(text);
  return (
    <div className="markdown csv">
      <p className="hint">{rows.length > MOST_ROWS ? previewWords.firstRows(MOST_ROWS, rows.length) : previewWords.rows(rows.length)}</p>
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
          {rows.slice(0, MOST_ROWS).map((row, index) => (
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
}
