import { Download, Eye } from "lucide-react";
import { useCallback, useState } from "react";

import { download, fileInfo } from "../../api/download";
import { artifactPath } from "../../api/file-paths";
import { useLoaded } from "../../api/use-loaded";
import { kindOfFile } from "../../previews/kinds";
import { toastProblem } from "../../ui/problem-bar";
import { useWords } from "../../words";
import { bytes } from "../../words/format";
import { usePreviewWords } from "../../words/previews";
import { FilePreview } from "./file-preview";

/** Files that tools returned in a turn. */
export function ToolFiles({ ids }: { ids: readonly string[] }) {
  const words = useWords();
  return (
    <div className="files" role="group" aria-label={words.files}>
      {ids.map((id, index) => (
        <FileButton key={id} id={id} otherwise={words.file(index + 1)} />
      ))}
    </div>
  );
}

/** Files that only another engine has: their ids there. */
export function FilesElsewhere({ ids }: { ids: readonly string[] }) {
  const words = useWords();
  return (
    <ul className="files" aria-label={words.files}>
      {ids.map((id, index) => (
        <li key={index} className="name" dir="auto">
          {id}
        </li>
      ))}
    </ul>
  );
}

function FileButton({ id, otherwise }: { id: string; otherwise: string }) {
  const words = useWords();
  const previewWords = usePreviewWords();
  const path = artifactPath(id);
  const { loaded } = useLoaded(useCallback((signal: AbortSignal) => fileInfo(path, signal), [path]));
  const info = loaded.state === "ready" ? loaded.value : null;
  const get = async () => {
    try {
      await download(path, {}, id);
    } catch (error) {
      toastProblem(words, error);
    }
  };
  const kind = info && kindOfFile(info.name, info.size);
  const [isOpen, setOpen] = useState(false);
  const saving = (
    <button type="button" onClick={() => void get()}>
      <Download aria-hidden />
      <span className="name">{info?.name || otherwise}</span>
      {info && (
        <small>
          {info.type} · {bytes(info.size)}
        </small>
      )}
    </button>
  );
  if (!kind) return saving;
  return (
    <div className="previewed-file">
      {saving}
      <button type="button" onClick={() => setOpen(true)}>
        <Eye aria-hidden />
        <span>{previewWords.preview}</span>
      </button>
      {isOpen && <FilePreview path={path} name={info!.name} kind={kind} onClose={() => setOpen(false)} />}
    </div>
  );
}
