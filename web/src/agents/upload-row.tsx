import { RotateCcw, X } from "lucide-react";

import { IconButton } from "../ui/icon-button";
import { describeProblem } from "../ui/problem-bar";
import { useWords, type Words } from "../words";
import { bytes } from "../words/format";
import { type DocumentUpload } from "./use-document-uploads";

interface Props {
  upload: DocumentUpload;
  onRetry: () => void;
  onDismiss: () => void;
}

/** Errors that a retry doesn't fix. */
const FINAL = new Set(["PAYLOAD_TOO_LARGE", "UNSUPPORTED_DOCUMENT", "AGENT_NOT_FOUND", "FORBIDDEN", "INVALID_REQUEST"]);

/** A file being uploaded to the agent, or a rejected one with the reason. */
export function UploadRow({ upload: { file, status }, onRetry, onDismiss }: Props) {
  const words = useWords();
  const isActive = status.state === "waiting" || status.state === "uploading";
  const percent = status.state === "uploading" ? Math.round(status.progress * 100) : 0;
  return (
    <li className="card server" data-status={status.state === "refused" ? "failed" : status.state}>
      <div className="row">
        <span className="file">
          <strong dir="auto">{file.name}</strong> <small>{bytes(file.size)}</small>
        </span>
        <span className="status">
          {status.state === "waiting"
            ? words.uploadWaiting
            : status.state === "uploading"
              ? words.uploadProgress(percent)
              : words.notAdded}
        </span>
        {status.state === "refused" && !FINAL.has(status.problem.code) && (
          <IconButton icon={RotateCcw} label={words.retryUpload(file.name)} onClick={onRetry} />
        )}
        <IconButton
          icon={X}
          label={isActive ? words.cancelUpload(file.name) : words.dismissFile(file.name)}
          onClick={onDismiss}
        />
      </div>
      {status.state === "uploading" && <progress value={status.progress} aria-label={words.uploadingFile(file.name)} />}
      {status.state === "refused" && <p className="wrong">{reasonOf(words, file, status)}</p>}
      {status.state === "duplicate" && <p className="why">{words.documentThere(status.of)}</p>}
    </li>
  );
}

function reasonOf(words: Words, file: File, { problem, most }: Extract<DocumentUpload["status"], { state: "refused" }>): string {
  if (most !== null) return words.documentTooLarge(bytes(most));
  if (problem.code === "UNREACHABLE") return words.uploadLost;
  if (problem.code === "UNSUPPORTED_DOCUMENT") return file.size ? words.documentUnsupported : words.documentEmpty;
  return describeProblem(words, problem);
}
