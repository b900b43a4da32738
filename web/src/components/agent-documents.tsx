import { Upload } from "lucide-react";
import { useCallback, useEffect, useRef, useState, type DragEvent } from "react";

import { ask, get } from "../api/client";
import { type DocumentView, type PageView_DocumentView } from "../api/schema";
import { useLoaded } from "../state/use-loaded";
import { type Problem } from "../thread/reduce";
import { problemOf } from "../thread/thread";
import { useWords } from "../words";
import { DocumentRow } from "./document-row";
import { DocumentSearch } from "./document-search";
import { ProblemBar, toldProblem } from "./problem-bar";

const LOOK_EVERY_MS = 1200;
const KINDS = ".pdf,.docx,.html,.htm,.md,.markdown,.txt,.csv";

/** What an agent can search. */
export function AgentDocuments({ agentId }: { agentId: string }) {
  const words = useWords();
  const path = `/api/agents/${agentId}/documents`;
  const read = useCallback((signal: AbortSignal) => readAll(path, signal), [path]);
  const { loaded, again } = useLoaded(read);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [uploading, setUploading] = useState(0);
  const documents = loaded.state === "ready" ? loaded.value : [];
  const isBusy = documents.some((it) => it.status === "processing");
  useEffect(() => {
    if (!isBusy) return;
    const timer = setInterval(() => void again(), LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, [isBusy, again]);

  const change = async (what: string, request: Parameters<typeof ask>[1]) => {
    try {
      await ask(what, request);
      setProblem(null);
    } catch (error) {
      setProblem(problemOf(error));
    }
    await again();
  };
  const upload = async (files: readonly File[]) => {
    if (!files.length) return;
    const body = new FormData();
    for (const file of files) body.append("files", file);
    setUploading(files.length);
    await change(path, { method: "POST", body });
    setUploading(0);
  };
  return (
    <div className="form">
      <p className="hint">{words.documentsHint}</p>
      <DropZone onFiles={(files) => void upload(files)} />
      {uploading > 0 && (
        <p className="hint" role="status">
          {words.uploading(uploading)}
        </p>
      )}
      {problem && <ProblemBar problem={problem} onDismiss={() => setProblem(null)} />}
      {loaded.state === "failed" && <p className="hint">{toldProblem(words, loaded.problem)}</p>}
      {documents.length > 0 && (
        <ul className="cards">
          {documents.map((it) => (
            <DocumentRow
              key={it.id}
              document={it}
              onRetry={() => void change(`${path}/${it.id}/retry`, { method: "POST" })}
              onDelete={() => void change(`${path}/${it.id}`, { method: "DELETE" })}
            />
          ))}
        </ul>
      )}
      {documents.some((it) => it.status === "ready") && <DocumentSearch agentId={agentId} />}
    </div>
  );
}

async function readAll(path: string, signal: AbortSignal): Promise<DocumentView[]> {
  const found: DocumentView[] = [];
  let cursor: string | null = null;
  do {
    const page: PageView_DocumentView = await get(path, { limit: 200, cursor }, signal);
    found.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor);
  return found;
}

function DropZone({ onFiles }: { onFiles: (files: readonly File[]) => void }) {
  const words = useWords();
  const input = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    onFiles([...event.dataTransfer.files]);
  };
  return (
    <div
      className="drop"
      data-over={over}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <Upload aria-hidden />
      <p>{words.dropFiles}</p>
      <button type="button" onClick={() => input.current?.click()}>
        {words.chooseFiles}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        accept={KINDS}
        aria-label={words.documents}
        className="unseen"
        tabIndex={-1}
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
    </div>
  );
}
