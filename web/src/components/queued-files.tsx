import { useFile } from "../state/known-files";
import { isImage } from "../turn/files";
import { useWords } from "../words";
import { FileChip } from "./file-chip";
import { ImageButton } from "./image-button";

/** The files of a message that waits, of which its conversation tells only the ids. */
export function QueuedFiles({ ids }: { ids: readonly string[] }) {
  const words = useWords();
  return (
    <div className="message-files" role="group" aria-label={words.files}>
      {ids.map((id, index) => (
        <QueuedFile key={id} id={id} otherwise={words.file(index + 1)} />
      ))}
    </div>
  );
}

function QueuedFile({ id, otherwise }: { id: string; otherwise: string }) {
  const file = useFile(id) ?? { fileId: id, fileName: otherwise, mediaType: "", size: 0 };
  return isImage(file) ? <ImageButton image={file} /> : <FileChip file={file} />;
}
