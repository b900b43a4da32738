import { type ImportView } from "@threadkeep/client";
import { CircleAlert, CircleCheck } from "lucide-react";
import { useEffect, useRef } from "react";

import { useFocusAfterClose } from "../hooks/use-focus-after-close";
import { hrefOf } from "../state/route";
import { describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useImportWords } from "../words/imports";
import { stopImport } from "./imports";
import { describeSkipped } from "./skipped";
import { countsOf, summaryOf } from "./summary";

/** The latest import: how far it is, or what came of it. */
export function ImportRun({ run, isStopping }: { run: ImportView; isStopping: boolean }) {
  const { locale } = useWords();
  const importWords = useImportWords();
  const heading = useRef<HTMLHeadingElement>(null);
  const isRunning = run.status === "RUNNING";
  // The button that the user pressed last is gone: to choose the file, or to stop.
  useFocusAfterClose(isRunning, () => heading.current);
  useEffect(() => {
    if (isRunning && document.activeElement === document.body) heading.current?.focus();
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once, when it begins
  }, []);
  return (
    <section className="card import-run" aria-labelledby="import-title" data-status={run.status}>
      <h2 id="import-title" ref={heading} tabIndex={-1} dir="auto">
        {!isRunning && (run.status === "COMPLETED" ? <CircleCheck aria-hidden /> : <CircleAlert aria-hidden />)}
        {isRunning ? importWords.importing(run.fileName) : summaryOf(run, importWords, locale)}
      </h2>
      <p className="unseen" role="status">
        {isRunning ? "" : summaryOf(run, importWords, locale)}
      </p>
      {isRunning ? <Progress run={run} isStopping={isStopping} /> : <Outcome run={run} />}
    </section>
  );
}

function Progress({ run, isStopping }: { run: ImportView; isStopping: boolean }) {
  const { locale } = useWords();
  const importWords = useImportWords();
  const { found, done } = run;
  return (
    <>
      <progress value={found === null ? undefined : done / Math.max(found, 1)} aria-labelledby="import-title" />
      <p className="counts">
        {found === null
          ? importWords.reading
          : [importWords.progress(done.toLocaleString(locale), found.toLocaleString(locale)), ...countsOf(run, importWords, locale)].join(" · ")}
      </p>
      <p className="hint">{importWords.leave}</p>
      <button type="button" disabled={isStopping} onClick={() => void stopImport(run)}>
        {isStopping ? importWords.stopping : importWords.stop}
      </button>
    </>
  );
}

function Outcome({ run }: { run: ImportView }) {
  const words = useWords();
  const importWords = useImportWords();
  const counts = countsOf(run, importWords, words.locale);
  const { error, problems, notes, conversations, leftOut } = run;
  return (
    <>
      {error && <p className="wrong">{importWords.reasons[error.reason ?? ""] ?? describeProblem(words, error)}</p>}
      <p className="counts">{[run.fileName, ...counts].join(" · ")}</p>
      {conversations.length > 0 && (
        <>
          {conversations.length < run.imported && <h3>{importWords.some}</h3>}
          <ul className="imported">
            {conversations.map(({ id, title }) => (
              <li key={id}>
                <a href={hrefOf({ name: "conversation", id })} dir="auto">
                  {title || words.untitled}
                </a>
              </li>
            ))}
          </ul>
          <a className="button" href={hrefOf({ name: "conversations" })}>
            {importWords.all}
          </a>
        </>
      )}
      {!error && problems.length > 0 && (
        <Listed title={importWords.skipped} lines={problems.map((it) => describeSkipped(it, importWords))} count={leftOut} />
      )}
      {notes.length > 0 && <Listed title={importWords.notes} lines={notes} count={notes.length} />}
    </>
  );
}

function Listed({ title, lines, count }: { title: string; lines: readonly string[]; count: number }) {
  const { locale } = useWords();
  const importWords = useImportWords();
  const rest = count - lines.length;
  return (
    <details>
      <summary>{title}</summary>
      <ul>
        {lines.map((line, index) => (
          <li key={index} dir="auto">
            {line}
          </li>
        ))}
        {rest > 0 && <li>{importWords.more(rest.toLocaleString(locale))}</li>}
      </ul>
    </details>
  );
}
