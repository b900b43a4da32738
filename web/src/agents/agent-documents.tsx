import { requestProblemOf, type ApiRequest, type DocumentView, type PageView_DocumentView, type Problem } from "@threadkeep/client";
import { Upload } from "lucide-react";
import { useCallback, useEffect, useRef, useState } from "react";

import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { useFileDrop } from "../hooks/use-file-drop";
import { confirmed } from "../state/confirmation";
import { ProblemBar, describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";
import { DocumentRow } from "./document-row";
import { DocumentSearch } from "./document-search";
import { UploadRow } from "./upload-row";
import { useDocumentUploads } from "./use-document-uploads";

const LOOK_EVERY_MS = 1200;
const KINDS = ".pdf,.docx,.html,.htm,.md,.markdown,.txt,.csv";

const NONE: readonly DocumentView[] = [];

/** What an agent can search. */
export function AgentDocuments({ agentId }: { agentId: string }) {
  const words = useWords();
  const agentWords = useAgentWords();
  const path = `/api/agents/${agentId}/documents`;
  const read = useCallback((signal: AbortSignal) => readAll(path, signal), [path]);
  const { loaded, again } = useLoaded(read);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [documents, setDocuments] = useState(NONE);
  useEffect(() => {
    if (loaded.state === "ready") setDocuments(loaded.value);
    // Keep the documents shown last, and try again until the server is back.
    else if (loaded.state === "loading" || loaded.problem.code !== "SERVER_UNREACHABLE") setDocuments(NONE);
  }, [loaded]);
  const isBusy = documents.some((it) => it.status === "processing");
  useEffect(() => {
    if (!isBusy) return;
    const timer = setInterval(() => void again(), LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, [isBusy, again]);

  const change = async (what: string, request: ApiRequest) => {
    try {
      await api.request(what, request);
      setProblem(null);
    } catch (error) {
      setProblem(requestProblemOf(error));
    }
    await again();
  };
  const remove = async ({ id, fileName }: DocumentView) => {
    const question = { title: agentWords.deleteDocument(fileName), text: agentWords.deleteDocumentSure, action: words.delete };
    if (await confirmed(question)) await change(`${path}/${id}`, { method: "DELETE" });
  };
  const { uploads, add, retry, dismiss } = useDocumentUploads(path, documents, again);
  const active = uploads.filter(({ status }) => status.state === "waiting" || status.state === "uploading").length;
  const refused = uploads.length - active;
  const { isOver, target } = useFileDrop(add);
  return (
    <div className="form documents" {...target}>
      <p className="hint">{agentWords.documentsHint}</p>
      <DropZone isOver={isOver} onFiles={add} />
      <p className="hint" role="status">
        {active > 0 ? agentWords.uploading(active) : refused > 0 ? agentWords.filesNotAdded(refused) : ""}
      </p>
      {uploads.length > 0 && (
        <ul className="cards" aria-label={agentWords.uploads}>
          {uploads.map((it) => (
            <UploadRow key={it.key} upload={it} onRetry={() => retry(it)} onDismiss={() => dismiss(it)} />
          ))}
        </ul>
      )}
      {problem && <ProblemBar problem={problem} onDismiss={() => setProblem(null)} />}
      {loaded.state === "failed" && <p className="hint">{describeProblem(words, loaded.problem)}</p>}
      {documents.length > 0 && (
        <ul className="cards">
          {documents.map((it) => (
            <DocumentRow
              key={it.id}
              document={it}
              onRetry={() => void change(`${path}/${it.id}/retry`, { method: "POST" })}
              onDelete={() => void remove(it)}
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
    const page: PageView_DocumentView = await api.get(path, { limit: 200, cursor }, signal);
    found.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor);
  return found;
}

function DropZone({ isOver, onFiles }: { isOver: boolean; onFiles: (files: readonly File[]) => void }) {
  const agentWords = useAgentWords();
  const input = useRef<HTMLInputElement>(null);
  return (
    <div className="drop" data-over={isOver}>
      <Upload aria-hidden />
      <p>{agentWords.dropFiles}</p>
      <button type="button" onClick={() => input.current?.click()}>
        {agentWords.chooseFiles}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        accept={KINDS}
        aria-label={agentWords.documents}
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
