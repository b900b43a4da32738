/** The line of an activity: what happens now, or what was done. Pure. */

import { isBlank, type Part, type PartOf, type ToolProgress } from "@threadkeep/client";

import { type Words } from "../words";
import { capitalized, seconds } from "../words/format";
import { isOutput, isRetry, segmentsOf, type Segment, type Step } from "./segments";

type Call = PartOf<"tool_call">;

/** More names than these are only counted. */
const MOST_NAMES = 3;
/** Shorter durations are not shown. */
const LEAST_MS = 1000;

export interface Now {
  /** The calls that wait for the user. */
  waiting: ReadonlySet<string>;
  progress: Record<string, ToolProgress> | undefined;
}

/** Whether the model was retried, and nothing else happened. */
export function isOnlyRetries(steps: readonly Step[]): boolean {
  return steps.every(isRetry);
}

/** The segments without activities that only retried the model, once the retry has produced something. */
export function shownSegments(parts: readonly Part[], running: boolean): Segment[] {
  return segmentsOf(parts).filter(
    (it, index, all) => it.kind !== "activity" || !isOnlyRetries(it.steps) || (running && index === all.length - 1),
  );
}

/** The activity in progress: the last segment, or one whose tools run while their output is below it; or -1. */
export function liveActivity(segments: readonly Segment[]): number {
  const at = segments.findLastIndex((it) => !isOutput(it));
  const segment = segments[at];
  if (segment?.kind !== "activity") return -1;
  return at === segments.length - 1 || isAtWork(segment.steps) ? at : -1;
}

/** Whether one of its tools is at work, or waits. */
export function isAtWork(steps: readonly Step[]): boolean {
  return steps.some((it) => it.type === "tool_call" && it.status === "running");
}

/** Whether all of its tools that have not ended wait for the user. */
export function isWaitingForUser(steps: readonly Step[], waiting: ReadonlySet<string>): boolean {
  const running = callsOf(steps).filter((it) => it.status === "running");
  return running.length > 0 && running.every((it) => waiting.has(it.toolCallId));
}

/** What happens now: the latest thought, the tool at work, or that the model thinks. */
export function latest(words: Words, steps: readonly Step[], { waiting, progress }: Now): string {
  const last = steps.at(-1);
  if (last?.type === "thought") return lastLine(last.text) || last.title || words.thinking;
  const working = callsOf(steps).findLast((it) => it.status === "running" && !waiting.has(it.toolCallId));
  if (working) return atWork(words, working, progress?.[working.toolCallId]);
  if (isWaitingForUser(steps, waiting)) return words.waitingForYou;
  return last && isRetry(last) ? words.retrying : words.thinking;
}

function atWork(words: Words, call: Call, progress: ToolProgress | undefined): string {
  const doing = words.toolsAtWork[call.toolName] ?? words.usingTool(readableName(call.toolName));
  const share = progress?.total ? `${progress.progress}/${progress.total}` : "";
  const how = [progress?.message, share].filter(Boolean).join(" · ");
  return how ? `${doing} ${how}` : doing;
}

/** The last line or sentence of a thought, without its marks. */
export function lastLine(text: string): string {
  const pieces = text.split(/\n+|(?<=[.!?])\s+|(?<=[。！？])/).filter((it) => !isBlank(it));
  return (pieces.at(-1) ?? "").replace(/[*_`#]+/g, "").trim();
}

/** What was done, in the order in which it was: “Searched documents, used sales”. */
export function summary(words: Words, steps: readonly Step[]): string {
  const phrases = [...new Set(steps.map((step) => phraseOf(words, step, steps)).filter((it) => it !== null))];
  if (phrases.length) return capitalized(phrases.join(words.comma));
  const took = spentMs(steps);
  return took < LEAST_MS ? words.thought : words.thoughtFor(seconds(took, words.locale));
}

/** How long it took, unless the summary says so or it is unknown. */
export function tookOf(words: Words, steps: readonly Step[]): string {
  const took = spentMs(steps);
  const isThoughtOnly = steps.every((it) => it.type === "thought" || isRetry(it));
  return isThoughtOnly || took < LEAST_MS ? "" : seconds(took, words.locale);
}

/** What did not work: “1 failed · 1 timed out”; the summary names denied calls. */
export function faultsOf(words: Words, steps: readonly Step[]): string {
  const calls = callsOf(steps);
  const counts = new Map<Call["status"], number>();
  for (const { status } of calls) if (!["ok", "running", "denied"].includes(status)) counts.set(status, (counts.get(status) ?? 0) + 1);
  const faults = [...counts].map(([status, count]) =>
    calls.length > 1 ? words.ofCalls(count, words.toolStatus[status] ?? status) : (words.toolStatus[status] ?? status),
  );
  return faults.join(" · ");
}

function phraseOf(words: Words, step: Step, steps: readonly Step[]): string | null {
  if (step.type === "thought") return step.title ?? null;
  if (step.type === "retrieval") return words.searchedFor(step.query);
  if (step.type === "notice") return null;
  const calls = callsOf(steps);
  if (step.status === "denied") return words.deniedTools(named(words, calls.filter((it) => it.status === "denied")));
  const others = calls.filter((it) => it.status !== "denied" && !words.toolsUsed[it.toolName]);
  return words.toolsUsed[step.toolName] ?? words.used(named(words, others));
}

/** The names of the called tools, each once. */
function named(words: Words, calls: readonly Call[]): string {
  const counts = new Map<string, number>();
  for (const { toolName } of calls) counts.set(toolName, (counts.get(toolName) ?? 0) + 1);
  const names = [...counts].map(([name, count]) => readableName(name) + (count > 1 ? ` ×${count}` : ""));
  const shown = names.slice(0, MOST_NAMES).join(words.comma);
  return names.length > MOST_NAMES ? words.andMore(shown, names.length - MOST_NAMES, names.length) : shown;
}

/** How long thoughts and calls took; calls made together ran side by side. */
export function spentMs(steps: readonly Step[]): number {
  let sum = 0;
  const longest = new Map<number, number>();
  for (const step of steps) {
    if (step.type === "thought") sum += step.durationMs;
    else if (step.type === "tool_call") longest.set(step.iteration, Math.max(longest.get(step.iteration) ?? 0, step.durationMs ?? 0));
  }
  return [...longest.values()].reduce((all, it) => all + it, sum);
}

function callsOf(steps: readonly Step[]): Call[] {
  return steps.filter((it) => it.type === "tool_call");
}

function readableName(toolName: string): string {
  return toolName.replace(/[_-]+/g, " ");
}
