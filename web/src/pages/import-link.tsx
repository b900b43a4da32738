import { Upload } from "lucide-react";

import { hrefOf } from "../state/route";
import { useImportWords } from "../words/imports";

/** Leads from conversations that are here to those that could be. */
export function ImportLink() {
  const importWords = useImportWords();
  return (
    <a className="button" href={hrefOf({ name: "import" })} aria-label={importWords.manage}>
      <Upload aria-hidden /> {importWords.short}
    </a>
  );
}
