import { kindOf, type KeptFile } from "@threadkeep/client";
import { useState } from "react";

import { download } from "../../api/download";
import { filePath } from "../../api/file-paths";
import { kindOfFile } from "../../previews/kinds";
import { toastProblem } from "../../ui/problem-bar";
import { useChunk } from "../../ui/use-chunk";
import { useWords } from "../../words";
import { bytes } from "../../words/format";
import { FileIcon } from "./file-icon";

const loadPreview = () => import("./file-preview");

/** A file of a message: what can be shown opens, anything else is saved. */
export function FileChip({ file }: { file: KeptFile }) {
  const words = useWords();
  const { fileId, fileName, size } = file;
  const kind = kindOfFile(fileName, size);
  const [isOpen, setOpen] = useState(false);
  const preview = useChunk(loadPreview, isOpen);
  const save = () => void download(filePath(fileId), {}, fileName).catch((error: unknown) => toastProblem(words, error));
  return (
    <>
      <button type="button" className="file-chip" title={fileName} onClick={kind ? () => setOpen(true) : save}>
        <FileIcon />
        <span className="unseen">{kind ? words.open : words.download} </span>
        <span className="text">
          <span className="name">{fileName}</span>
          <small>
            {kindOf(file)} · {bytes(size)}
          </small>
        </span>
      </button>
      {isOpen && kind && preview && (
        <preview.FilePreview path={filePath(fileId)} name={fileName} kind={kind} onClose={() => setOpen(false)} />
      )}
    </>
  );
}
