import { type PartOf } from "@threadkeep/client";
import { Ban, Check, CircleAlert, CircleHelp, Lightbulb, RotateCw, Search, type LucideIcon } from "lucide-react";
import { type ReactNode } from "react";

import { type Now } from "../../turn/activity";
import { previewsByCall } from "../../turn/previews";
import { type Step } from "../../turn/segments";
import { useWords, type Words } from "../../words";
import { capitalized, duration } from "../../words/format";
import { useRequestWords, type RequestWords } from "../../words/requests";
import { ToolStep } from "./tool-step";

interface Props extends Now {
  steps: readonly Step[];
}

type Call = PartOf<"tool_call">;

const ICONS: Record<Plain["type"], LucideIcon> = { thought: Lightbulb, retrieval: Search, notice: RotateCw };
const ENDED: Partial<Record<Call["status"], LucideIcon>> = { ok: Check, denied: Ban, unknown: CircleHelp };

/** The steps of an activity, in order. Loaded when the user first opens an activity. */
export function ActivitySteps({ steps, waiting, progress }: Props) {
  const words = useWords();
  const requestWords = useRequestWords();
  const calls = steps.filter((it) => it.type === "tool_call");
  const previews = previewsByCall(calls);
  return (
    <ol className="activity-steps">
      {steps.map((step, index) => (
        <li key={index} data-status={step.type === "tool_call" ? step.status : undefined}>
          <StepMark step={step} isWaiting={step.type === "tool_call" && waiting.has(step.toolCallId)} />
          {step.type === "tool_call" ? (
            <ToolStep
              call={step}
              preview={previews.get(step) ?? ""}
              progress={progress?.[step.toolCallId]}
              isWaiting={waiting.has(step.toolCallId)}
              open={calls.length === 1}
            />
          ) : (
            <PlainStep title={titleOf(words, requestWords, step)} took={step.type === "thought" ? step.durationMs : 0}>
              {detailOf(step)}
            </PlainStep>
          )}
        </li>
      ))}
    </ol>
  );
}

/** The kind of a step; of a call, its state. */
function StepMark({ step, isWaiting }: { step: Step; isWaiting: boolean }) {
  if (step.type === "tool_call" && step.status === "running") return <i className={isWaiting ? "beat asks" : "beat"} aria-hidden />;
  const Icon = step.type === "tool_call" ? (ENDED[step.status] ?? CircleAlert) : ICONS[step.type];
  return <Icon aria-hidden />;
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

function titleOf(words: Words, requestWords: RequestWords, step: Plain): string {
  if (step.type === "notice") return requestWords.retried;
  return step.type === "retrieval" ? capitalized(words.searchedFor(step.query)) : (step.title ?? words.thought);
}

function detailOf(step: Plain): string {
  if (step.type === "notice") return step.message;
  if (step.type === "thought") return step.text;
  return [...new Set(step.hits.map((hit) => hit.source))].join(", ");
}
