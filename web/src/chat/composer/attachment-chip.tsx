import { isMeasuredImage, kindOf, type KeptFile } from "@threadkeep/client";
import { RotateCcw, X } from "lucide-react";

import { type Attachment } from "../../state/attachments";
import { viewed } from "../../state/viewed-image";
import { IconButton } from "../../ui/icon-button";
import { describeProblem } from "../../ui/problem-bar";
import { useWords, type Words } from "../../words";
import { bytes } from "../../words/format";
import { FileIcon } from "../files/file-icon";
import { ImagePreview } from "../files/image-preview";

/** Errors that a retry doesn't fix. */
const NOT_RETRYABLE = new Set(["UNSUPPORTED_FILE", "PAYLOAD_TOO_LARGE"]);

interface Props {
  attachment: Attachment;
  onRemove: () => void;
  onRetry: () => void;
}

/** A file of a draft. */
export function AttachmentChip({ attachment, onRemove, onRetry }: Props) {
  const words = useWords();
  const { fileName, size, status, source, localUrl } = attachment;
  const isUploading = status.state === "uploading";
  const file = status.state === "ready" ? status.file : null;
  const isPicture = file ? isMeasuredImage(file) : isUploading && localUrl !== null;
  return (
    <li className="attachment" data-state={status.state} data-picture={isPicture} title={fileName}>
      <Look attachment={attachment} file={file} />
      {!isPicture && (
        <span className="text">
          <span className="name">{fileName}</span>
          {status.state === "failed" ? (
            <small className="wrong">{describeFailure(words, status.problem)}</small>
          ) : (
            <small>
              {kindOf(attachment)} · {bytes(size)}
            </small>
          )}
        </span>
      )}
      {isUploading && <progress value={status.progress} aria-label={words.uploadingFile(fileName)} />}
      {status.state === "failed" && source && !NOT_RETRYABLE.has(status.problem.code) && (
        <IconButton icon={RotateCcw} label={words.retryUpload(fileName)} onClick={onRetry} />
      )}
      <IconButton icon={X} label={(isUploading ? words.cancelUpload : words.removeFile)(fileName)} onClick={onRemove} />
    </li>
  );
}

function Look({ attachment: { fileName, status, localUrl }, file }: { attachment: Attachment; file: KeptFile | null }) {
  const words = useWords();
  if (file && isMeasuredImage(file))
    return (
      <button type="button" className="look" aria-label={words.openImage(fileName)} onClick={() => viewed.set(file)}>
        <ImagePreview file={file} />
      </button>
    );
  if (status.state === "uploading" && localUrl)
    return (
      <span className="look preview">
        <img src={localUrl} alt={fileName} />
      </span>
    );
  return <FileIcon />;
}

/** Why a file wasn't uploaded. */
export function describeFailure(words: Words, problem: Parameters<typeof describeProblem>[1]): string {
  return problem.code === "UNREACHABLE" ? words.uploadLost : describeProblem(words, problem);
}
