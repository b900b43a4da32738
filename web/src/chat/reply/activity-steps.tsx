import "../../styles/activity-steps.css";

import { type PartOf } from "@threadkeep/client";
import { Ban, Check, CircleAlert, CircleHelp, Lightbulb, RotateCw, Search, type LucideIcon } from "lucide-react";
import { type CSSProperties, type ReactNode } from "react";

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

type ProgramStep = PartOf<"step">;

const ICONS: Record<Plain["type"], LucideIcon> = { thought: Lightbulb, retrieval: Search, notice: RotateCw };
const ENDED: Partial<Record<(Call | ProgramStep)["status"], LucideIcon>> = { ok: Check, denied: Ban, cancelled: Ban, unknown: CircleHelp };

/** Deeper steps are indented no further. */
const MOST_DEPTH = 4;

/** The steps of an activity, in order. Loaded when the user first opens an activity. */
export function ActivitySteps({ steps, waiting, progress }: Props) {
  const words = useWords();
  const requestWords = useRequestWords();
  const calls = steps.filter((it) => it.type === "tool_call");
  const previews = previewsByCall(calls);
  return (
    <ol className="activity-steps">
      {steps.map((step, index) => (
        <li key={index} data-status={isDone(step) ? step.status : undefined} style={indentOf(steps, step)}>
          <StepMark step={step} isWaiting={step.type === "tool_call" && waiting.has(step.toolCallId)} />
          {step.type === "tool_call" ? (
            <ToolStep
              call={step}
              preview={previews.get(step) ?? ""}
              progress={progress?.[step.toolCallId]}
              isWaiting={waiting.has(step.toolCallId)}
              open={calls.length === 1}
            />
          ) : step.type === "step" ? (
            <StepOfProgram step={step} />
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
  if (isDone(step) && step.status === "running") return <i className={isWaiting ? "beat asks" : "beat"} aria-hidden />;
  const Icon = isDone(step) ? (ENDED[step.status] ?? CircleAlert) : ICONS[step.type];
  return <Icon aria-hidden />;
}

/** A step of a program: what it did, or its name, how it ended, and how long it took. Its result is not for its user. */
function StepOfProgram({ step: { title, name, agent, status, durationMs } }: { step: ProgramStep }) {
  const words = useWords();
  const requestWords = useRequestWords();
  return (
    <div className="tool" role="group" aria-label={requestWords.programStep(agent ?? title ?? name)} data-status={status}>
      <p className="step">
        {(agent ?? title) ? <span dir="auto">{agent ?? title}</span> : <code className="name">{name}</code>}
        <span className="facts">
          {(agent ?? title) && agent !== name && <code className="name">{name}</code>}
          <small className="status">{words.toolStatus[status] ?? status}</small>
          {durationMs !== null && <small>{duration(durationMs)}</small>}
        </span>
      </p>
      {status === "unknown" && <p className="detail">{requestWords.unknownStep}</p>}
    </div>
  );
}

function isDone(step: Step): step is Call | ProgramStep {
  return step.type === "tool_call" || step.type === "step";
}

/** How deep a step is within those that ran its agent. */
function indentOf(steps: readonly Step[], step: Step): CSSProperties | undefined {
  const parents = new Map(steps.filter((it) => it.type === "step").map((it) => [it.stepId, it.parentId]));
  let depth = 0;
  let id = isDone(step) ? step.parentId : undefined;
  for (; id && parents.has(id) && depth < MOST_DEPTH; id = parents.get(id)) depth++;
  return depth ? ({ "--depth": depth } as CSSProperties) : undefined;
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

type Plain = Exclude<Step, { type: "tool_call" | "step" }>;

function titleOf(words: Words, requestWords: RequestWords, step: Plain): string {
  if (step.type === "notice") return requestWords.retried;
  return step.type === "retrieval" ? capitalized(words.searchedFor(step.query)) : (step.title ?? words.thought);
}

function detailOf(step: Plain): string {
  if (step.type === "notice") return step.message;
  if (step.type === "thought") return step.text;
  return [...new Set(step.hits.map((hit) => hit.source))].join(", ");
}
