import { type DocumentView } from "@threadkeep/client";
import { RotateCcw, Trash2 } from "lucide-react";

import { IconButton } from "../ui/icon-button";
import { useAgentWords } from "../words/agents";
import { bytes } from "../words/format";

interface Props {
  document: DocumentView;
  onRetry: () => void;
  onDelete: () => void;
}

export function DocumentRow({ document, onRetry, onDelete }: Props) {
  const agentWords = useAgentWords();
  const { fileName, size, status, progress, chunkCount, error } = document;
  return (
    <li className="card server" data-status={status}>
      <div className="row">
        <span className="file">
          <strong dir="auto">{fileName}</strong>{" "}
          <small>
            {bytes(size)}
            {status === "ready" && ` · ${agentWords.passages(chunkCount)}`}
          </small>
        </span>
        <span className="status">
          {status === "processing" && progress > 0 ? agentWords.processed(Math.floor(progress * 100)) : agentWords.documentStatus[status]}
        </span>
        {status === "failed" && <IconButton icon={RotateCcw} label={agentWords.retryDocument(fileName)} onClick={onRetry} />}
        <IconButton icon={Trash2} label={agentWords.deleteDocument(fileName)} onClick={onDelete} />
      </div>
      {status === "processing" && <progress value={progress || undefined} aria-label={agentWords.documentStatus.processing} />}
      {error && <p className="wrong">{error}</p>}
    </li>
  );
}
