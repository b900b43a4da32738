/**
 * The line of an activity: what happens now, or what was done. Pure.
 *
 * Names of tools stand between backticks, and nothing else does: the page shows them as code, the same everywhere.
 */

import { isBlank, type Part, type PartOf, type ToolProgress } from "@threadkeep/client";

import { type Words } from "../words";
import { capitalized, seconds, shortSeconds } from "../words/format";
import { absentProgram } from "./notices";
import { isOutput, isRetry, segmentsOf, type Segment, type Step } from "./segments";

type Call = PartOf<"tool_call">;
type ProgramStep = PartOf<"step">;

/** More names, or values, than these are only counted. */
const MOST_NAMES = 3;
const MOST_VALUES = 2;
/** Longer values of arguments are cut. */
const MOST_CHARACTERS = 40;
/** Shorter durations are not shown: of thoughts, and of tools. */
const LEAST_MS = 1000;
const LEAST_TOOL_MS = 50;

export interface Now {
  /** The calls that wait for the user. */
  waiting: ReadonlySet<string>;
  progress: Record<string, ToolProgress> | undefined;
}

/** Whether the model was retried, and nothing else happened. */
export function isOnlyRetries(steps: readonly Step[]): boolean {
  return steps.every(isRetry);
}

/** The segments without what counts only for the moment, once it is over: a retry of the model, waiting for a program. */
export function shownSegments(parts: readonly Part[], running: boolean): Segment[] {
  return segmentsOf(parts).flatMap((it, index, all) => (running && index === all.length - 1 ? [it] : lasting(it)));
}

/** What stays of a segment; nothing of one that was only for the moment. */
function lasting(segment: Segment): Segment[] {
  if (segment.kind === "activity") return isOnlyRetries(segment.steps) ? [] : [segment];
  if (segment.kind !== "notices") return [segment];
  const notices = segment.notices.filter((it) => absentProgram(it) === undefined);
  return notices.length ? [{ ...segment, notices }] : [];
}

/** Whether a segment of a running reply is an activity in progress: the current one, or one whose tools wait for an answer below it. */
export function isLive(segments: readonly Segment[], index: number): boolean {
  const segment = segments[index]!;
  return segment.kind === "activity" && (index === liveActivity(segments) || isAtWork(segment.steps));
}

/** The activity in progress: the last segment, or one whose tools run while their output is below it; or -1. */
export function liveActivity(segments: readonly Segment[]): number {
  const at = segments.findLastIndex((it) => !isOutput(it));
  const segment = segments[at];
  if (segment?.kind !== "activity") return -1;
  return at === segments.length - 1 || isAtWork(segment.steps) ? at : -1;
}

/** Whether one of its tools is at work, or waits. */
function isAtWork(steps: readonly Step[]): boolean {
  return steps.some((it) => (it.type === "tool_call" || it.type === "step") && it.status === "running");
}

/** Whether all of its tools that have not ended wait for the user. */
export function isWaitingForUser(steps: readonly Step[], waiting: ReadonlySet<string>): boolean {
  const running = callsOf(steps).filter((it) => it.status === "running");
  return running.length > 0 && running.every((it) => waiting.has(it.toolCallId));
}

/** What happens now: the latest thought, the tools that run, the person they wait for, or that the model is thinking. */
export function latest(words: Words, steps: readonly Step[], { waiting, progress }: Now): string {
  const last = steps.at(-1);
  if (last?.type === "thought") return unmarked(lastLine(last.text) || last.title || words.thinking);
  const running = callsOf(steps).filter((it) => it.status === "running");
  const working = running.filter((it) => !waiting.has(it.toolCallId));
  if (working.length) return atWork(words, working, callsOf(steps), progress);
  if (running.length) return `${words.waitingForYou} · ${named(words, running)}`;
  const current = programStepsOf(steps).findLast((it) => it.status === "running");
  if (current?.agent) return words.runsAgent(unmarked(current.agent));
  if (current) return current.title ? unmarked(current.title) : words.runningTools(codeOf(current));
  return last && isRetry(last) ? words.retrying : words.thinking;
}

/** What the tools at work are doing: their progress for one, how many are done for several. */
function atWork(words: Words, working: readonly Call[], all: readonly Call[], progress: Now["progress"]): string {
  const together = all.filter((it) => it.iteration === working[0]!.iteration);
  const [call] = working as [Call];
  const doing = words.toolsAtWork[call.toolName] ?? words.runningTools(withValues(words, together.length > 1 ? together : working));
  const how = together.length > 1 ? words.callsDone(together.length - working.length, together.length) : progressOf(words, progress?.[call.toolCallId]);
  return how ? `${doing} · ${how}` : doing;
}

/** A tool's progress, said once: in its own words, or as a count. */
export function progressOf(words: Words, progress: ToolProgress | undefined): string {
  if (progress?.message) return unmarked(progress.message);
  return progress?.total ? words.ofTotal(progress.progress, progress.total) : "";
}

/** The last line or sentence of a thought, without its marks. */
export function lastLine(text: string): string {
  const pieces = text.split(/\n+|(?<=[.!?])\s+|(?<=[。！？])/).filter((it) => !isBlank(it));
  return (pieces.at(-1) ?? "").replace(/[*_`#]+/g, "").trim();
}

/** What was done, in the order in which it was: “Searched documents, ran `sales`”. */
export function summary(words: Words, steps: readonly Step[]): string {
  const phrases = [...new Set(steps.map((step) => phraseOf(words, step, steps)).filter((it) => it !== null))];
  // A step's title is a sentence of its own.
  if (steps.some((it) => it.type === "step")) return phrases.map(capitalized).join(" · ");
  if (phrases.length) return capitalized(phrases.join(words.comma));
  const took = spentMs(steps);
  return took < LEAST_MS ? words.thought : words.thoughtFor(seconds(took, words.locale));
}

/** How long it took, unless the summary says so or it is unknown. */
export function tookOf(words: Words, steps: readonly Step[]): string {
  const took = spentMs(steps);
  const hasWorked = callsOf(steps).length > 0 || programStepsOf(steps).length > 0;
  return !hasWorked || took < LEAST_TOOL_MS ? "" : shortSeconds(took, words.locale);
}

/** How the request about the only call ended; several have it in their own lines. */
export function outcomeOf(words: Words, steps: readonly Step[]): string {
  const [call, ...more] = callsOf(steps);
  // The summary says that it was denied.
  return call && !more.length && (hasRun(call) || hindranceOf(call) !== "denied") ? decisionOn(words, call) : "";
}

/** How the request about a call ended; empty if nobody was asked. */
export function decisionOn(words: Words, { approval, clientRequest }: Pick<Call, "approval" | "clientRequest">): string {
  const request = clientRequest ?? approval;
  if (!request) return "";
  if (!request.action) return words.outcomes.none;
  const kind = request.action === "allow" ? (request.scope ?? "once") : request.action;
  return (words.outcomes as Record<string, string>)[kind] ?? kind;
}

/** What did not work: “1 failed · 1 timed out”, and whether it is only unknown; the summary names denied calls. */
export function faultsOf(words: Words, steps: readonly Step[]): { faults: string; isUnknown: boolean } {
  const done = [...callsOf(steps), ...programStepsOf(steps)];
  const counts = new Map<(Call | ProgramStep)["status"], number>();
  for (const { status } of done) if (!["ok", "running", "denied"].includes(status)) counts.set(status, (counts.get(status) ?? 0) + 1);
  const faults = [...counts].map(([status, count]) =>
    done.length > 1 ? words.ofCalls(count, words.toolStatus[status] ?? status) : (words.toolStatus[status] ?? status),
  );
  return { faults: faults.join(" · "), isUnknown: counts.size === 1 && counts.has("unknown") };
}

function phraseOf(words: Words, step: Step, steps: readonly Step[]): string | null {
  if (step.type === "thought") return step.title ? unmarked(step.title) : null;
  if (step.type === "retrieval") return words.searchedFor(unmarked(step.query));
  if (step.type === "notice") return null;
  if (step.type === "step") {
    // A step that ran an agent stands for what that did.
    if (programStepsOf(steps).some((it) => it.stepId === step.parentId)) return null;
    if (step.agent) return words.ranAgent(unmarked(step.agent));
    if (step.title) return unmarked(step.title);
    const same = programStepsOf(steps).filter((it) => !it.title && it.name === step.name && it.parentId === step.parentId);
    return words.ran(same.length > 1 ? `${codeOf(step)} ×${same.length}` : codeOf(step));
  }
  if (step.parentId && programStepsOf(steps).some((it) => it.stepId === step.parentId)) return null;
  const calls = callsOf(steps);
  if (!hasRun(step)) {
    const why = hindranceOf(step);
    const same = calls.filter((it) => !hasRun(it) && hindranceOf(it) === why);
    const say = { denied: words.deniedTools, unanswered: words.notRun, forbidden: words.notAllowed }[why];
    return say(withValues(words, same));
  }
  const own = words.toolsUsed[step.toolName];
  if (own) return withOwnValues(words, own, calls.filter((it) => hasRun(it) && it.toolName === step.toolName));
  const others = calls.filter((it) => hasRun(it) && !words.toolsUsed[it.toolName]);
  return words.ran(withValues(words, others));
}

/** What one of our own tools did: for what it searched, or how often it did something. */
function withOwnValues(words: Words, done: string, calls: readonly Call[]): string {
  const values = calls[0]!.toolName === "search_documents" ? valuesOf(words, calls) : "";
  if (values) return words.withValues(done, values);
  return calls.length > 1 ? `${done} ×${calls.length}` : done;
}

/** Whether its tool received it: nobody denied it, and it doesn't wait for a decision that never came. */
function hasRun({ approval, clientRequest, status }: Call): boolean {
  const action = (clientRequest ?? approval ?? { action: "allow" }).action;
  return status !== "denied" && action !== undefined && action !== "expire";
}

/** Why it didn't run: the user denied it, nobody answered, or a rule doesn't allow it. */
function hindranceOf({ approval, clientRequest }: Call): "denied" | "unanswered" | "forbidden" {
  const request = clientRequest ?? approval;
  if (!request) return "forbidden";
  return request.action === "deny" ? "denied" : "unanswered";
}

/** The called tools and, if there is only one, what sets its calls apart: “`weather`: Oslo, Lima and 4 more”. */
function withValues(words: Words, calls: readonly Call[]): string {
  const names = new Set(calls.map((it) => it.toolName));
  const values = names.size === 1 && valuesOf(words, calls);
  return values ? words.withValues(`\`${[...names][0]}\``, values) : named(words, calls);
}

/** What sets the calls of one tool apart; empty if nothing does. */
function valuesOf(words: Words, calls: readonly Call[]): string {
  const values = [...new Set(previewsOf(calls).filter(Boolean))];
  const shown = values.slice(0, MOST_VALUES).join(words.comma);
  const more = calls.length - Math.min(values.length, MOST_VALUES);
  return values.length && more > 0 ? words.andMore(shown, more, calls.length) : shown;
}

/** The names of the called tools, each once. */
function named(words: Words, calls: readonly Call[]): string {
  const counts = new Map<string, number>();
  for (const { toolName } of calls) counts.set(toolName, (counts.get(toolName) ?? 0) + 1);
  const names = [...counts].map(([name, count]) => `\`${unmarked(name)}\`${count > 1 ? ` ×${count}` : ""}`);
  const shown = names.slice(0, MOST_NAMES).join(words.comma);
  return names.length > MOST_NAMES ? words.andMore(shown, names.length - MOST_NAMES, names.length) : shown;
}

/** A call as far as its preview needs it; edited arguments are those that its tool received. */
export interface Previewed {
  arguments: Record<string, unknown>;
  approval?: { arguments?: Record<string, unknown> | null } | null;
}

/** For each call of one tool, the argument in which it differs from the others; of a single one, the first that can be read. */
export function previewsOf(calls: readonly Previewed[]): string[] {
  const all = calls.map((it) => it.approval?.arguments ?? it.arguments);
  const keys = [...new Set(all.flatMap(Object.keys))].filter((key) => all.some((it) => shortened(it[key])));
  const differs = (key: string) => new Set(all.map((it) => shortened(it[key]))).size === all.length;
  const key = (all.length > 1 && keys.find(differs)) || keys[0];
  return all.map((it) => (key === undefined ? "" : shortened(it[key])));
}

function shortened(value: unknown): string {
  const items = Array.isArray(value) ? value : [value];
  if (!items.every((it) => typeof it === "string" || typeof it === "number")) return "";
  // Without characters that hide or reorder others: it is one line of many.
  const text = unmarked(items.join(", ")).replace(/[\s\p{Cc}\p{Cf}]+/gu, " ").trim();
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1).trimEnd()}…` : text;
}

/** A stranger's text without the mark of a tool's name. */
function unmarked(text: string): string {
  return text.replaceAll("`", "'");
}

/** How long thoughts, calls and steps took; calls made together ran side by side, and so may steps. */
export function spentMs(steps: readonly Step[]): number {
  let sum = covered(programStepsOf(steps));
  const longest = new Map<number, number>();
  for (const step of steps) {
    if (step.type === "thought") sum += step.durationMs;
    else if (step.type === "tool_call") longest.set(step.iteration, Math.max(longest.get(step.iteration) ?? 0, step.durationMs ?? 0));
  }
  return [...longest.values()].reduce((all, it) => all + it, sum);
}

/** How much time was spent in at least one of some steps, which are in order of begin. */
function covered(steps: readonly ProgramStep[]): number {
  let sum = 0;
  let until = 0;
  for (const { startedAt, durationMs } of steps) {
    const from = Date.parse(startedAt);
    const to = from + (durationMs ?? 0);
    sum += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return sum;
}

function programStepsOf(steps: readonly Step[]): ProgramStep[] {
  return steps.filter((it) => it.type === "step");
}

function codeOf({ name }: ProgramStep): string {
  return `\`${unmarked(name)}\``;
}

function callsOf(steps: readonly Step[]): Call[] {
  return steps.filter((it) => it.type === "tool_call");
}
