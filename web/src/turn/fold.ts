/** Events to reply, pure: what the page shows of a turn is a function of its log, as on the server. */

import { type CitationView, type MessageView, type ThoughtStepView, type ToolCallView } from "../api/schema";
import { type RetrievalHit, type TurnEvent } from "./events";

const MOST_SNIPPET_CHARACTERS = 300;

export interface Progress {
  progress: number;
  total?: number;
  message?: string;
}

/** A reply that is being given. */
export interface LiveReply {
  message: MessageView;
  lastSeq: number;
  /** Since when the model has been thinking; null while it does not. */
  thinkingSince: number | null;
  progress: Record<string, Progress>;
}

/** A reply before its first event: whatever was known of it is told anew by the events. */
export function startReply(message: MessageView): LiveReply {
  return {
    message: {
      ...message,
      content: "",
      thoughtProcess: [],
      citations: [],
      artifactIds: [],
      toolCalls: [],
      usage: null,
      tokenCount: null,
    },
    lastSeq: 0,
    thinkingSince: null,
    progress: {},
  };
}

export function foldAll(reply: LiveReply, events: readonly TurnEvent[]): LiveReply {
  return events.reduce(fold, reply);
}

/** The reply after one more event; an event that was seen before changes nothing. */
export function fold(reply: LiveReply, event: TurnEvent): LiveReply {
  if (event.seq <= reply.lastSeq) return reply;
  const next = apply(reply, event);
  return { ...next, lastSeq: event.seq };
}

function apply(reply: LiveReply, event: TurnEvent): LiveReply {
  const { message } = reply;
  switch (event.type) {
    case "turn_start":
      return withMessage(reply, { status: "STREAMING", model: event.model ?? message.model });
    case "retrieval": {
      const sources = [...new Set(event.hits.map((hit) => hit.source))].join(", ");
      const step = thoughtStep("retrieval", event.query, event.at, sources, event.tool_call_id);
      return withMessage(reply, {
        citations: [...message.citations, ...citations(event.hits, message.citations.length)],
        thoughtProcess: [...message.thoughtProcess, step],
      });
    }
    case "iteration_start":
      return reply;
    case "thought":
      return think(reply, event.text, event.at);
    case "text": {
      const closed = closeThought(reply, event.at);
      return withMessage(closed, { content: textOf(closed.message) + event.text });
    }
    case "tool_call": {
      const closed = closeThought(reply, event.at);
      const step = thoughtStep("tool", event.tool_name, event.at, "", event.tool_call_id);
      const call: ToolCallView = {
        toolCallId: event.tool_call_id,
        toolName: event.tool_name,
        server: event.server,
        arguments: event.arguments,
        status: "running",
        result: null,
        durationMs: null,
      };
      return withMessage(closed, {
        toolCalls: [...message.toolCalls, call],
        thoughtProcess: [...closed.message.thoughtProcess, step],
      });
    }
    case "tool_progress": {
      const { progress, total, message: told } = event;
      return {
        ...reply,
        progress: { ...reply.progress, [event.tool_call_id]: { progress, total, message: told } },
      };
    }
    case "tool_result":
      return finishCall(reply, event);
    case "notice": {
      const step = thoughtStep("notice", event.code, event.at, event.message);
      return withMessage(reply, { thoughtProcess: [...message.thoughtProcess, step] });
    }
    case "usage": {
      const closed = closeThought(reply, event.at);
      const usage = {
        inputTokens: (message.usage?.inputTokens ?? 0) + event.input_tokens,
        outputTokens: (message.usage?.outputTokens ?? 0) + event.output_tokens,
        estimated: (message.usage?.estimated ?? false) || event.estimated,
      };
      return withMessage(closed, { usage, tokenCount: usage.outputTokens });
    }
    case "done":
      return withMessage(closeThought(reply, event.at), { status: event.status, completedAt: time(event.at) });
    case "error": {
      const { code, message: told, retryable } = event;
      return withMessage(closeThought(reply, event.at), {
        status: "FAILED",
        completedAt: time(event.at),
        error: { code, message: told, retryable },
      });
    }
  }
}

function finishCall(reply: LiveReply, event: TurnEvent & { type: "tool_result" }): LiveReply {
  const { message } = reply;
  const toolCalls = message.toolCalls.map((call) => {
    if (call.toolCallId !== event.tool_call_id) return call;
    const ended: ToolCallView = {
      ...call,
      status: event.status,
      result: event.result ?? null,
      durationMs: event.duration_ms,
    };
    if (event.error !== undefined) ended.error = event.error;
    if (event.chart_data !== undefined) ended.chartData = event.chart_data;
    return ended;
  });
  const thoughtProcess = message.thoughtProcess.map((step) =>
    step.kind === "tool" && step.toolCallId === event.tool_call_id
      ? { ...step, detail: event.error ?? "", durationMs: event.at - Date.parse(step.startedAt) }
      : step,
  );
  const artifactIds = [...message.artifactIds, ...(event.artifact_ids ?? [])];
  return withMessage(reply, { toolCalls, thoughtProcess, artifactIds });
}

function think(reply: LiveReply, text: string, at: number): LiveReply {
  const steps = reply.message.thoughtProcess;
  const last = steps.at(-1);
  if (reply.thinkingSince === null || last?.kind !== "thought") {
    const begun = { ...reply, thinkingSince: at };
    return withMessage(begun, { thoughtProcess: [...steps, thoughtStep("thought", "Thought", at, text)] });
  }
  const longer = { ...last, detail: last.detail + text };
  return withMessage(reply, { thoughtProcess: [...steps.slice(0, -1), longer] });
}

function closeThought(reply: LiveReply, at: number): LiveReply {
  const steps = reply.message.thoughtProcess;
  const last = steps.at(-1);
  if (reply.thinkingSince === null || last?.kind !== "thought") return reply;
  const closed = { ...last, durationMs: at - reply.thinkingSince };
  return withMessage({ ...reply, thinkingSince: null }, { thoughtProcess: [...steps.slice(0, -1), closed] });
}

function withMessage(reply: LiveReply, change: Partial<MessageView>): LiveReply {
  return { ...reply, message: { ...reply.message, ...change } };
}

function thoughtStep(
  kind: string,
  title: string,
  at: number,
  detail: string,
  toolCallId?: string,
): ThoughtStepView {
  const step: ThoughtStepView = { kind, title, detail, startedAt: time(at), durationMs: 0 };
  return toolCallId === undefined ? step : { ...step, toolCallId };
}

function citations(hits: readonly RetrievalHit[], before: number): CitationView[] {
  return hits.map((hit, index) => {
    const citation: CitationView = {
      index: before + index + 1,
      title: hit.source,
      snippet: [...hit.text].slice(0, MOST_SNIPPET_CHARACTERS).join(""),
      score: hit.score,
    };
    if (hit.document_id) {
      citation.fileName = hit.source;
      citation.documentId = hit.document_id;
    }
    if (hit.page != null) citation.page = hit.page;
    return citation;
  });
}

/** What a message says; a card has no text. */
export function textOf(message: MessageView): string {
  return typeof message.content === "string" ? message.content : "";
}

function time(at: number): string {
  return new Date(at).toISOString();
}
