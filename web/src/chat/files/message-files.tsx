import { isImage, type KeptFile } from "@threadkeep/client";

import { useWords } from "../../words";
import { FileChip } from "./file-chip";
import { ImageButton } from "./image-button";

/** The files of a message: images as they look, others by name. */
export function MessageFiles({ files }: { files: readonly KeptFile[] }) {
  const words = useWords();
  if (!files.length) return null;
  const images = files.filter(isImage);
  return (
    <div className="message-files" role="group" aria-label={words.files}>
      {images.map((it) => (
        <ImageButton key={it.fileId} image={it} alone={images.length === 1} />
      ))}
      {files.map((it) => !isImage(it) && <FileChip key={it.fileId} file={it} />)}
    </div>
  );
}
