/** A turn as bars on a time line: model calls, tools, searches.

Where the log is gone, the server makes the events from the reply's parts (a replay), which know less of the times.
*/

import { type TurnEvent } from "@threadkeep/client";

import { previewsByCall, type Named } from "./previews";

export interface Span {
  kind: "model" | "tool" | "retrieval" | "waiting";
  title: string;
  /** What sets a call apart from others of its tool. */
  preview?: string;
  /** Milliseconds from the turn's start. */
  from: number;
  to: number;
  ok: boolean;
  /** A model call that was made again. */
  superseded?: boolean;
}

export interface Timeline {
  spans: readonly Span[];
  duration: number;
}

export function timelineOf(events: readonly TurnEvent[]): Timeline {
  const start = events[0]?.at ?? 0;
  const end = (events.at(-1)?.at ?? start) - start;
  const spans: Span[] = [];
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
  return { spans, duration: end };
}
