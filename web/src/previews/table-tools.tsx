import "../styles/previews.css";

import { Download, Maximize2 } from "lucide-react";
import { useEffect, useState, type ReactNode, type RefObject } from "react";

import { save } from "../api/download";
import { IconButton } from "../ui/icon-button";
import { LargerView } from "../ui/larger-view";
import { usePreviewWords } from "../words/previews";
import { csvOf } from "./csv";

/** Without it, spreadsheets take UTF-8 for something else. */
const BYTE_ORDER_MARK = "\uFEFF";

/** What one can do with a table; `children` are its rows. */
export function TableTools({ table, children }: { table: RefObject<HTMLTableElement | null>; children: ReactNode }) {
  const previewWords = usePreviewWords();
  const [isLarge, setLarge] = useState(false);
  const [count, setCount] = useState(0);
  useEffect(() => setCount(table.current?.tBodies[0]?.rows.length ?? 0), [table, children]);
  const download = (
    <IconButton
      icon={Download}
      label={previewWords.downloadCsv}
      onClick={() =>
        save(new Blob([BYTE_ORDER_MARK, csvOf(table.current!)], { type: "text/csv" }), `${previewWords.tableName}.csv`)
      }
    />
  );
  return (
    <figcaption className="table-tools">
      <span>{previewWords.rows(count)}</span>
      {download}
      <IconButton icon={Maximize2} label={previewWords.larger} onClick={() => setLarge(true)} />
      {isLarge && (
        <LargerView title={previewWords.table} actions={download} onClose={() => setLarge(false)}>
          <div className="markdown">
            <table>{children}</table>
          </div>
        </LargerView>
      )}
    </figcaption>
  );
}
