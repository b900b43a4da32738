/** A turn as bars on a line of time: calls of the model, tools, searches. */

import { type TurnView } from "../api/schema";
import { type TurnEvent } from "./events";
import { type Part, type PartOf } from "./parts";

export interface Span {
  kind: "model" | "tool" | "retrieval";
  title: string;
  /** Milliseconds from the turn's start. */
  from: number;
  to: number;
  ok: boolean;
}

export interface Timeline {
  spans: readonly Span[];
  duration: number;
}

/** As its events tell it, or, where the log is gone, as far as the reply's parts do. */
export function timelineOf(turn: TurnView, events: readonly TurnEvent[], parts: readonly Part[]): Timeline {
  const isGone = events.length === 0 || events[0]!.replayed === true;
  return isGone ? timelineOfParts(turn, parts) : timelineOfEvents(events);
}

function timelineOfEvents(events: readonly TurnEvent[]): Timeline {
  const start = events[0]?.at ?? 0;
  const end = (events.at(-1)?.at ?? start) - start;
  const spans: Span[] = [];
  const openTools = new Map<string, Span>();
  let call: Span | null = null;
  for (const event of events) {
    const at = event.at - start;
    switch (event.type) {
      case "iteration_start":
        call = { kind: "model", title: String(event.iteration), from: at, to: end, ok: true };
        spans.push(call);
        break;
      case "usage":
        if (call) call.to = at;
        call = null;
        break;
      case "retrieval":
        spans.push({ kind: "retrieval", title: event.query, from: at, to: at, ok: true });
        break;
      case "tool_call": {
        const span: Span = { kind: "tool", title: event.tool_name, from: at, to: end, ok: true };
        openTools.set(event.tool_call_id, span);
        spans.push(span);
        break;
      }
      case "tool_result": {
        const span = openTools.get(event.tool_call_id);
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
  }
  return { spans, duration: end };
}

/** Tools have their times; a model call lies between them, from the results of the call before to its own tools. */
function timelineOfParts(turn: TurnView, parts: readonly Part[]): Timeline {
  const start = Date.parse(turn.startedAt);
  const duration = turn.endedAt === null ? 0 : Date.parse(turn.endedAt) - start;
  const since = (time: string) => Date.parse(time) - start;
  const spans: Span[] = [];
  let iteration = 0;
  let call: Span | null = null;
  let resultsAt = 0;
  for (const part of parts) {
    if (part.iteration > iteration) {
      ({ iteration } = part);
      call = { kind: "model", title: String(iteration), from: resultsAt, to: duration, ok: true };
      spans.push(call);
    }
    if (part.type === "retrieval") {
      const at = since(part.startedAt);
      spans.push({ kind: "retrieval", title: part.query, from: at, to: at, ok: true });
      resultsAt = Math.max(resultsAt, at);
    } else if (part.type === "tool_call") {
      const tool = toolSpan(part, since(part.startedAt));
      spans.push(tool);
      resultsAt = Math.max(resultsAt, tool.to);
      if (call) call.to = Math.min(call.to, tool.from);
    }
  }
  if (call?.to === duration && turn.status === "FAILED") call.ok = false;
  return { spans, duration };
}

function toolSpan({ toolName, status, durationMs }: PartOf<"tool_call">, from: number): Span {
  return { kind: "tool", title: toolName, from, to: from + (durationMs ?? 0), ok: status === "ok" };
}
