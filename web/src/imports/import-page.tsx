import "../styles/imports.css";

import { type ImportView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { Upload as UploadIcon } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { TopBar } from "../chat/top-bar";
import { useFileDrop } from "../hooks/use-file-drop";
import { agents, chosenAgent, refreshAgents } from "../state/agents";
import { useAgentItems } from "../state/use-agent-items";
import { AgentFace } from "../ui/agent-face";
import { Field } from "../ui/field";
import { Picker } from "../ui/picker";
import { describeProblem } from "../ui/problem-bar";
import { useWords, type Words } from "../words";
import { bytes, dateTime } from "../words/format";
import { useImportWords, type ImportWords } from "../words/imports";
import { ImportRun } from "./import-run";
import { beginImport, cancelUpload, imports, loadImports, type Refusal, type Upload } from "./imports";
import { summaryOf } from "./summary";

/** Brings conversations from other products. */
export function ImportPage({ onMenu }: { onMenu: () => void }) {
  const words = useWords();
  const importWords = useImportWords();
  const { upload, refusal, runs, stopping } = useStore(imports);
  useEffect(() => void loadImports(), []);
  const [latest, ...earlier] = runs ?? [];
  const isBusy = upload !== null || latest?.status === "RUNNING";
  return (
    <div className="page">
      <TopBar title={importWords.title} onMenu={onMenu} />
      <div className="content settings imports">
        <p className="hint">{importWords.intro}</p>
        {upload && <Uploading upload={upload} />}
        {latest && !upload && <ImportRun key={latest.id} run={latest} isStopping={stopping === latest.id} />}
        {refusal && (
          <p className="wrong" role="alert">
            {describeRefusal(refusal, words, importWords)}
          </p>
        )}
        {runs && !isBusy && <Choosing />}
        {earlier.length > 0 && <Earlier runs={earlier} />}
      </div>
    </div>
  );
}

function Choosing() {
  const importWords = useImportWords();
  const all = useStore(agents);
  const [agentId, setAgentId] = useState<string | null>(null);
  const agent = chosenAgent(all, agentId);
  const items = useAgentItems(agent?.id ?? null, ({ id }) => setAgentId(id));
  useEffect(() => void refreshAgents().catch(() => {}), []); // another tab may have created one
  const input = useRef<HTMLInputElement>(null);
  const begin = ([file]: readonly File[]) => {
    if (file) void beginImport(file, agent?.id ?? null);
  };
  const { isOver, target } = useFileDrop(begin);
  return (
    <div className="choosing">
      <ul className="hint how">
        <li>{importWords.howChatGpt}</li>
        <li>{importWords.howClaude}</li>
      </ul>
      {agent && (
        <Field label={importWords.agent}>
          <Picker name={importWords.agent} shown={agent.name} face={<AgentFace agent={agent} />} groups={[{ items }]} />
        </Field>
      )}
      <div className="drop" data-over={isOver} {...target}>
        <UploadIcon aria-hidden />
        <p>{importWords.drop}</p>
        <button type="button" onClick={() => input.current?.click()}>
          {importWords.choose}
        </button>
        <input
          ref={input}
          type="file"
          accept=".zip,.json,.jsonl"
          aria-label={importWords.file}
          className="unseen"
          tabIndex={-1}
          onChange={(event) => {
            begin([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
      </div>
      <p className="hint">{importWords.again}</p>
    </div>
  );
}

function Uploading({ upload: { file, share } }: { upload: Upload }) {
  const importWords = useImportWords();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []); // the button that chose the file is gone
  return (
    <section className="card import-run" aria-labelledby="upload-title">
      <h2 id="upload-title" ref={heading} tabIndex={-1} dir="auto">
        {importWords.uploading(file.name)}
      </h2>
      <progress value={share} aria-labelledby="upload-title" />
      <p className="counts">{importWords.uploaded(bytes(share * file.size), bytes(file.size))}</p>
      <p className="hint">{importWords.stay}</p>
      <button type="button" onClick={cancelUpload}>
        {importWords.cancel}
      </button>
    </section>
  );
}

function Earlier({ runs }: { runs: readonly ImportView[] }) {
  const { locale } = useWords();
  const importWords = useImportWords();
  return (
    <section aria-labelledby="earlier-imports">
      <h2 id="earlier-imports">{importWords.earlier}</h2>
      <ul className="cards">
        {runs.map((run) => (
          <li key={run.id} className="card earlier-import">
            <strong dir="auto">{run.fileName}</strong>
            <p>{summaryOf(run, importWords, locale)}</p>
            <small>{dateTime(run.startedAt, locale)}</small>
          </li>
        ))}
      </ul>
    </section>
  );
}

function describeRefusal(refusal: Refusal, words: Words, importWords: ImportWords): string {
  const { code, reason, most } = refusal;
  if (reason && importWords.reasons[reason]) return importWords.reasons[reason];
  if (code === "PAYLOAD_TOO_LARGE" && most) return importWords.tooLarge(bytes(most));
  return code === "IMPORT_IN_PROGRESS" ? importWords.inProgress : describeProblem(words, refusal);
}
