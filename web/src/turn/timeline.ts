/** A turn as bars on a time line: model calls, tools, steps of a program, searches.

Where the log is gone, the server makes the events from the reply's parts (a replay), which know less of the times.
*/

import { type TurnEvent } from "@threadkeep/client";

import { previewsByCall, type Named } from "./previews";

export interface Span {
  kind: "model" | "tool" | "step" | "retrieval" | "waiting" | "resumed";
  title: string;
  /** What sets a call apart from others of its tool. */
  preview?: string;
  /** Milliseconds from the turn's start. */
  from: number;
  to: number;
  ok: boolean;
  /** A model call that was made again. */
  superseded?: boolean;
  /** Whether its title is a name in a program. */
  isCode?: boolean;
  /** A step that was cut off: nobody knows whether it took effect. */
  isUnknown?: boolean;
  /** How deep a step is within those that ran its agent. */
  depth?: number;
}

export interface Timeline {
  spans: readonly Span[];
  duration: number;
}

export function timelineOf(events: readonly TurnEvent[]): Timeline {
  const start = events[0]?.at ?? 0;
  const end = (events.at(-1)?.at ?? start) - start;
  const spans: Span[] = [];
  const program = isOfProgram(events) ? new Program(end) : null;
  const openTools = new Map<string, Span>();
  const openRequests = new Map<string, Span>();
  const calls = new Map<Span, Named>();
  /** The calls that wait for a decision, which may change their arguments. */
  const asking = new Map<string, Named>();
  let call: Span | null = null;
  /** The call that was cut off, until it is made again. */
  let cutOff: Span | null = null;
  let resultsAt = 0;
  let lastAt = 0;
  for (const event of events) {
    const at = event.at - start;
    if (program?.takes(event, at, lastAt)) {
      lastAt = at;
      continue;
    }
    switch (event.type) {
      case "iteration_start":
        // In a replay, tools that ran side by side follow one another.
        call = { kind: "model", title: String(event.iteration), from: Math.max(at, resultsAt), to: end, ok: true };
        spans.push(call);
        break;
      case "turn_resumed":
        // Its last event is the only known end.
        if (call) call.to = Math.max(call.from, lastAt);
        cutOff = call;
        call = null;
        break;
      case "iteration_restart":
        cutOff ??= call;
        if (cutOff) {
          cutOff.ok = false;
          cutOff.superseded = true;
        }
        cutOff = null;
        call = { kind: "model", title: String(event.iteration), from: at, to: end, ok: true };
        spans.push(call);
        break;
      case "approval_request": {
        const span: Span = { kind: "waiting", title: "", from: at, to: end, ok: true };
        openRequests.set(event.request_id, span);
        spans.push(span);
        const about = calls.get(openTools.get(event.tool_call_id ?? "")!);
        if (about) asking.set(event.request_id, about);
        break;
      }
      case "approval_response": {
        const span = openRequests.get(event.request_id);
        if (span) span.to = at;
        const about = asking.get(event.request_id);
        if (about) about.approval = { arguments: event.arguments };
        break;
      }
      case "usage":
        if (call) call.to = at;
        // What the model asked for runs once it has finished.
        for (const tool of openTools.values()) tool.from = at;
        // A replay has one sum at its end, whether the last call failed or not.
        if (!event.replayed) call = null;
        break;
      case "retrieval":
        spans.push({ kind: "retrieval", title: event.query, from: at, to: at, ok: true });
        break;
      case "tool_call": {
        // A replay knows no other end of the call.
        if (call && event.replayed) {
          call.to = at;
          call = null;
        }
        const span: Span = { kind: "tool", title: event.tool_name, from: at, to: end, ok: true };
        openTools.set(event.tool_call_id, span);
        calls.set(span, { toolName: event.tool_name, server: event.server, arguments: event.arguments ?? {} });
        spans.push(span);
        break;
      }
      case "tool_result": {
        const span = openTools.get(event.tool_call_id);
        openTools.delete(event.tool_call_id);
        resultsAt = Math.max(resultsAt, at);
        if (span) {
          span.to = at;
          span.ok = event.status === "ok";
        }
        break;
      }
      case "error":
        if (call) call.ok = false;
        break;
    }
    lastAt = at;
  }
  const previews = previewsByCall([...calls.values()]);
  for (const [span, call] of calls) if (previews.get(call)) span.preview = previews.get(call);
  return { spans: program ? [...spans, ...program.spans()].sort((a, b) => a.from - b.from) : spans, duration: end };
}

/** Whether a turn is one of an agent in code. */
export function isOfProgram(events: readonly TurnEvent[]): boolean {
  return events.some((it) => it.type === "step" || (it.type === "iteration_start" && it.step_id !== undefined));
}

/** The steps and model calls of an agent in code: what speaks begins an iteration, which need not be a model call. */
class Program {
  readonly #end: number;
  readonly #spans: Span[] = [];
  readonly #steps = new Map<string, Span>();
  /** When the model call began that speaks. */
  #modelFrom: number | null = null;
  #models = 0;

  constructor(end: number) {
    this.#end = end;
  }

  /** Takes the events that mean something else in a program's turn than in a model's. */
  takes(event: TurnEvent, at: number, lastAt: number): boolean {
    switch (event.type) {
      case "iteration_start":
        this.#modelFrom = event.step_id && !this.#steps.has(event.step_id) ? at : null;
        return true;
      case "usage":
        // A replay has one sum at its end.
        if (!event.replayed) this.#addModel(this.#modelFrom ?? lastAt, at);
        this.#modelFrom = null;
        return true;
      case "turn_resumed":
        // A pause is no interruption.
        if (event.attempt) this.#spans.push({ kind: "resumed", title: String(event.attempt), from: at, to: at, ok: true });
        return true;
      case "step":
        this.#step(event, at);
        return true;
      default:
        return event.type === "iteration_restart";
    }
  }

  /** All spans; a model call that has not ended goes on to the end. */
  spans(): readonly Span[] {
    if (this.#modelFrom !== null) this.#addModel(this.#modelFrom, this.#end);
    return this.#spans;
  }

  #addModel(from: number, to: number): void {
    this.#spans.push({ kind: "model", title: String(++this.#models), from, to, ok: true });
  }

  #step(event: TurnEvent & { type: "step" }, at: number): void {
    let span = this.#steps.get(event.step_id);
    if (!span) {
      const depth = event.parent_id === undefined ? 0 : (this.#steps.get(event.parent_id)?.depth ?? 0) + 1;
      span = { kind: "step", title: event.agent ?? event.title ?? event.name, from: at, to: this.#end, ok: true, isCode: !(event.agent ?? event.title), depth };
      this.#steps.set(event.step_id, span);
      this.#spans.push(span);
    }
    if (event.status === "running") return;
    span.to = at;
    span.ok = event.status === "ok" || event.status === "unknown";
    span.isUnknown = event.status === "unknown";
  }
}
