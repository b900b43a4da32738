import "../../styles/drawer.css";
import "../../styles/rerun.css";

import { contentOf, type Message, type ModelsView, type RerunView } from "@threadkeep/client";
import { Play, Square, X } from "lucide-react";
import { useCallback, useId, useLayoutEffect, useRef, useState, type FormEvent } from "react";

import { api } from "../../api/api";
import { useLoaded } from "../../api/use-loaded";
import { Markdown } from "../../markdown/markdown";
import { IconButton } from "../../ui/icon-button";
import { Picker } from "../../ui/picker";
import { describeProblem, ProblemText } from "../../ui/problem-bar";
import { useWords } from "../../words";
import { useFeedbackWords } from "../../words/feedback";
import { duration } from "../../words/format";
import { useRerunWords } from "../../words/rerun";
import { modelGroups } from "../composer/model-picker";
import { useRerun, type RerunState } from "./use-rerun";

type Run = RerunView["rerun"];

interface Props {
  agentId: string | undefined;
  message: Message;
  /** Missing while the conversation can't be changed. */
  onRegenerate?: (model: string) => void;
  onClose: () => void;
}

/** Another model's answer beside this one. The conversation stays as it is. */
export function RerunDrawer({ agentId, message, onRegenerate, onClose }: Props) {
  const words = useWords();
  const rerunWords = useRerunWords();
  const feedbackWords = useFeedbackWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const id = useId();
  const read = useCallback((signal: AbortSignal) => api.get<ModelsView>("/api/models", { agentId }, signal), [agentId]);
  const { loaded } = useLoaded(read);
  const models = loaded.state === "ready" ? loaded.value.items : [];
  const [chosen, setChosen] = useState<string | null>(null);
  const other = models.find((it) => it.id !== message.model) ?? models[0];
  const model = chosen ?? other?.id ?? "";
  const groups = modelGroups(words, models, model, setChosen);
  const { shown, run, stop } = useRerun(message);
  const isRunning = shown.state === "running";
  useLayoutEffect(() => {
    const open = dialog.current;
    open?.showModal();
    heading.current?.focus();
    return () => open?.close();
  }, []);
  const start = (event: FormEvent) => {
    event.preventDefault();
    if (isRunning) stop();
    else void run(model);
  };
  const result = shown.state === "done" ? shown.result : null;
  return (
    <dialog ref={dialog} className="drawer rerun" aria-labelledby={`${id}-title`} onClose={() => !dialog.current?.open && onClose()}>
      <header>
        <h2 id={`${id}-title`} ref={heading} tabIndex={-1}>
          {feedbackWords.tryModel}
        </h2>
        <IconButton icon={X} label={words.close} onClick={() => dialog.current?.close()} />
      </header>
      <p className="hint">{rerunWords.hint}</p>
      <form className="choice" onSubmit={start}>
        <label htmlFor={`${id}-model`}>{words.model}</label>
        <Picker
          id={`${id}-model`}
          name={words.model}
          shown={groups[0]?.items.find((it) => it.checked)?.label ?? model}
          disabled={isRunning || !models.length}
          groups={groups}
        />
        <button type="submit" className="primary" disabled={!model}>
          {isRunning ? <Square aria-hidden /> : <Play aria-hidden />}
          {isRunning ? rerunWords.stop : shown.state === "idle" ? rerunWords.run : rerunWords.runAgain}
        </button>
      </form>
      {loaded.state === "failed" && (
        <p className="wrong" role="alert">
          {describeProblem(words, loaded.problem)}
        </p>
      )}
      <div className="runs">
        <section aria-label={rerunWords.original}>
          <h3>
            {rerunWords.original} <small>{message.model}</small>
          </h3>
          {result && <Figures run={result.original} />}
          <Markdown text={contentOf(message.parts)} isPassage />
          {result && <Calls run={result.original} />}
        </section>
        {shown.state !== "idle" && (
          <section aria-label={rerunWords.other} aria-busy={isRunning}>
            <h3>
              {rerunWords.other} <small>{result?.rerun.model ?? model}</small>
            </h3>
            <Other shown={shown} />
            {result && onRegenerate && (
              <button
                type="button"
                onClick={() => {
                  onClose();
                  onRegenerate(model);
                }}
              >
                {rerunWords.regenerate}
              </button>
            )}
          </section>
        )}
      </div>
      <p className="unseen" role="status">
        {isRunning ? words.running : result ? rerunWords.outcome[result.outcome] : ""}
      </p>
    </dialog>
  );
}

function Other({ shown }: { shown: RerunState }) {
  const words = useWords();
  const rerunWords = useRerunWords();
  switch (shown.state) {
    case "idle":
      return null;
    case "failed":
      return (
        <p className="wrong" role="alert">
          <ProblemText problem={shown.problem} />
        </p>
      );
    case "running": {
      const text = contentOf(shown.reply.message.parts);
      return text ? <Markdown text={text} isPassage /> : <p className="hint">{words.thinking}</p>;
    }
    case "done": {
      const { rerun, error } = shown.result;
      return (
        <>
          <Figures run={rerun} />
          {rerun.text ? <Markdown text={rerun.text} isPassage /> : <p className="hint">{rerunWords.noText}</p>}
          <Calls run={rerun} />
          {error && (
            <p className="ending" data-kind={shown.result.outcome === "NEEDS_TOOL" ? "interrupted" : "failed"}>
              {shown.result.outcome === "NEEDS_TOOL" ? rerunWords.needsTool : <ProblemText problem={error} />}
            </p>
          )}
        </>
      );
    }
  }
}

function Figures({ run }: { run: Run }) {
  const words = useWords();
  const rerunWords = useRerunWords();
  const cost = run.cost ? `${run.cost.amount} ${run.cost.currency}` : rerunWords.noPrice;
  const tokens = rerunWords.tokens(run.usage.outputTokens.toLocaleString(words.locale));
  return <p className="figures">{[cost, duration(run.durationMs), tokens].join(" · ")}</p>;
}

/** The tools that a run called; those that only it called stand out. */
function Calls({ run }: { run: Run }) {
  const rerunWords = useRerunWords();
  if (!run.calls.length) return null;
  return (
    <ul className="calls" aria-label={rerunWords.calls}>
      {run.calls.map((call, index) => (
        <li key={index} className={call.inBoth ? undefined : "differs"}>
          {call.server ? `${call.server}.${call.toolName}` : call.toolName}
          {!call.inBoth && <strong> {rerunWords.onlyHere}</strong>}
          <pre>{JSON.stringify(call.arguments)}</pre>
        </li>
      ))}
    </ul>
  );
}
