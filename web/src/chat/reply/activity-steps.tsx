import { Lightbulb, RotateCw, Search, Wrench, type LucideIcon } from "lucide-react";
import { type ReactNode } from "react";

import { type Now } from "../../turn/activity";
import { type Step } from "../../turn/segments";
import { useWords, type Words } from "../../words";
import { capitalized, duration } from "../../words/format";
import { ToolStep } from "./tool-step";

interface Props extends Now {
  steps: readonly Step[];
}

const ICONS: Record<Step["type"], LucideIcon> = { thought: Lightbulb, retrieval: Search, tool_call: Wrench, notice: RotateCw };

/** The steps of an activity, in order. Loaded when the user first opens an activity. */
export function ActivitySteps({ steps, waiting, progress }: Props) {
  const words = useWords();
  const calls = steps.filter((it) => it.type === "tool_call");
  return (
    <ol className="activity-steps">
      {steps.map((step, index) => {
        const Icon = ICONS[step.type];
        return (
          <li key={index}>
            <Icon aria-hidden />
            {step.type === "tool_call" ? (
              <ToolStep
                call={step}
                progress={progress?.[step.toolCallId]}
                isWaiting={waiting.has(step.toolCallId)}
                open={calls.length === 1}
              />
            ) : (
              <PlainStep title={titleOf(words, step)} took={step.type === "thought" ? step.durationMs : 0}>
                {detailOf(step)}
              </PlainStep>
            )}
          </li>
        );
      })}
    </ol>
  );
}

function PlainStep({ title, took, children }: { title: string; took: number; children: ReactNode }) {
  return (
    <div>
      <p className="step">
        {title} {took >= 1000 && <small>{duration(took)}</small>}
      </p>
      {children && (
        <p className="detail" dir="auto">
          {children}
        </p>
      )}
    </div>
  );
}

type Plain = Exclude<Step, { type: "tool_call" }>;

function titleOf(words: Words, step: Plain): string {
  if (step.type === "notice") return words.retried;
  return step.type === "retrieval" ? capitalized(words.searchedFor(step.query)) : (step.title ?? words.thought);
}

function detailOf(step: Plain): string {
  if (step.type === "notice") return step.message;
  if (step.type === "thought") return step.text;
  return [...new Set(step.hits.map((hit) => hit.source))].join(", ");
}
