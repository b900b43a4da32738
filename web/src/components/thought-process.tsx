import { Brain, ChevronRight, FileSearch, Info, Wrench, type LucideIcon } from "lucide-react";

import { type ThoughtStepView } from "../api/schema";
import { useWords, type Words } from "../words";
import { duration } from "../words/format";

interface Props {
  steps: readonly ThoughtStepView[];
  /** Whether more steps may come. */
  running: boolean;
  thinking: boolean;
}

const ICONS: Record<string, LucideIcon> = { thought: Brain, tool: Wrench, retrieval: FileSearch, notice: Info };

/** How the agent came to its answer, folded. */
export function ThoughtProcess({ steps, running, thinking }: Props) {
  const words = useWords();
  const spent = steps.reduce((sum, step) => sum + step.durationMs, 0);
  const last = steps.at(-1);
  return (
    <details className="card thoughts" role="group" aria-label={words.thoughtProcess}>
      <summary>
        <ChevronRight aria-hidden className="fold" />
        <span className={running ? "shimmer" : ""}>
          {running ? (thinking || !last ? words.thinking : stepTitle(words, last)) : told(words, spent)}
        </span>
        <small>{words.steps(steps.length)}</small>
      </summary>
      <ol>
        {steps.map((step, index) => {
          const Icon = ICONS[step.kind] ?? Info;
          return (
            <li key={index}>
              <Icon aria-hidden />
              <div>
                <p className="step">
                  {stepTitle(words, step)} {step.durationMs > 0 && <small>{duration(step.durationMs)}</small>}
                </p>
                {step.detail && <p className="detail">{step.detail}</p>}
              </div>
            </li>
          );
        })}
      </ol>
    </details>
  );
}

function told(words: Words, spent: number): string {
  return spent > 0 ? words.thoughtFor(duration(spent)) : words.thoughtProcess;
}

function stepTitle(words: Words, step: ThoughtStepView): string {
  switch (step.kind) {
    case "thought":
      return words.stepThought;
    case "tool":
      return words.stepTool(step.title);
    case "retrieval":
      return words.stepRetrieval(step.title);
    case "notice":
      return words.stepNotice;
    default:
      return step.title;
  }
}
