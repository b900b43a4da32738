import { RotateCcw, X } from "lucide-react";

import { IconButton } from "../ui/icon-button";
import { describeProblem } from "../ui/problem-bar";
import { useWords, type Words } from "../words";
import { useAgentWords, type AgentWords } from "../words/agents";
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
  const agentWords = useAgentWords();
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
            ? agentWords.uploadWaiting
            : status.state === "uploading"
              ? agentWords.uploadProgress(percent)
              : agentWords.notAdded}
        </span>
        {status.state === "refused" && !FINAL.has(status.problem.code) && (
          <IconButton icon={RotateCcw} label={words.retryUpload(file.name)} onClick={onRetry} />
        )}
        <IconButton
          icon={X}
          label={isActive ? words.cancelUpload(file.name) : agentWords.dismissFile(file.name)}
          onClick={onDismiss}
        />
      </div>
      {status.state === "uploading" && <progress value={status.progress} aria-label={words.uploadingFile(file.name)} />}
      {status.state === "refused" && <p className="wrong">{reasonOf(words, agentWords, file, status)}</p>}
      {status.state === "duplicate" && <p className="why">{agentWords.documentThere(status.of)}</p>}
    </li>
  );
}

type Refused = Extract<DocumentUpload["status"], { state: "refused" }>;

function reasonOf(words: Words, agentWords: AgentWords, file: File, { problem, most }: Refused): string {
  if (most !== null) return agentWords.documentTooLarge(bytes(most));
  if (problem.code === "UNREACHABLE") return words.uploadLost;
  if (problem.code === "UNSUPPORTED_DOCUMENT") return file.size ? agentWords.documentUnsupported : agentWords.documentEmpty;
  return describeProblem(words, problem);
}
