import { Brain, ChevronRight, FileSearch } from "lucide-react";
import { memo } from "react";

import { type Step } from "../turn/segments";
import { useWords, type Words } from "../words";
import { duration } from "../words/format";

interface Props {
  steps: readonly Step[];
  /** Whether the model is writing the last one. */
  thinking: boolean;
}

/** A run of thoughts and searches: one line, which opens. */
export const Steps = memo(
  function Steps({ steps, thinking }: Props) {
    const words = useWords();
    const [only, ...more] = steps;
    return (
      <details className="steps" role="group" aria-label={words.thoughtProcess}>
        <summary>
          <ChevronRight aria-hidden className="fold" />
          <span className={thinking ? "shimmer" : ""}>{thinking ? words.thinking : headline(words, steps)}</span>
          {more.length > 0 && <small>{words.steps(steps.length)}</small>}
        </summary>
        {only && !more.length ? (
          <p className="detail" dir="auto">
            {detailOf(only)}
          </p>
        ) : (
          <ol>
            {steps.map((step, index) => (
              <StepView key={index} step={step} />
            ))}
          </ol>
        )}
      </details>
    );
  },
  (before, after) =>
    before.thinking === after.thinking &&
    before.steps.length === after.steps.length &&
    before.steps.every((it, index) => it === after.steps[index]),
);

function StepView({ step }: { step: Step }) {
  const words = useWords();
  const Icon = step.type === "thought" ? Brain : FileSearch;
  const detail = detailOf(step);
  const took = spent([step]);
  return (
    <li>
      <Icon aria-hidden />
      <div>
        <p className="step">
          {titleOf(words, step)} {took > 0 && <small>{duration(took)}</small>}
        </p>
        {detail && (
          <p className="detail" dir="auto">
            {detail}
          </p>
        )}
      </div>
    </li>
  );
}

function headline(words: Words, steps: readonly Step[]): string {
  const [only, ...more] = steps;
  if (only && !more.length && (only.type === "retrieval" || only.title)) return titleOf(words, only);
  const took = spent(steps);
  return took > 0 ? words.thoughtFor(duration(took)) : words.thoughtProcess;
}

function titleOf(words: Words, step: Step): string {
  return step.type === "retrieval" ? words.stepRetrieval(step.query) : (step.title ?? words.stepThought);
}

function detailOf(step: Step): string {
  if (step.type === "thought") return step.text;
  return [...new Set(step.hits.map((hit) => hit.source))].join(", ");
}

function spent(steps: readonly Step[]): number {
  return steps.reduce((sum, step) => sum + (step.type === "thought" ? step.durationMs : 0), 0);
}
