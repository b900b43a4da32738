import { filePath, kindOf, type KeptFile } from "@threadkeep/client";

import { download } from "../../api/download";
import { toastProblem } from "../../ui/problem-bar";
import { useWords } from "../../words";
import { bytes } from "../../words/format";
import { FileIcon } from "./file-icon";

/** A file of a message, which can be saved. */
export function FileChip({ file }: { file: KeptFile }) {
  const words = useWords();
  const { fileId, fileName, size } = file;
  const save = async () => {
    try {
      await download(filePath(fileId), {}, fileName);
    } catch (error) {
      toastProblem(words, error);
    }
  };
  return (
    <button type="button" className="file-chip" title={fileName} onClick={() => void save()}>
      <FileIcon />
      <span className="unseen">{words.download} </span>
      <span className="text">
        <span className="name">{fileName}</span>
        <small>
          {kindOf(file)} · {bytes(size)}
        </small>
      </span>
    </button>
  );
}
