/** Events to a reply of parts, pure: what the page shows of a turn is a function of its log, as on the server. */

import { addCosts } from "../money.ts";
import { type CostView, type FilePartView, type RetrievalHitView, type StepPartView, type ToolCallPartView } from "../schema.ts";
import { type EventImage, type RetrievalHit, type TurnEvent } from "./events.ts";
import { type Message, type Part, type PartOf } from "./parts.ts";
import { requestOf } from "./requests.ts";

export interface ToolProgress {
  progress: number;
  total?: number;
  message?: string;
}

/** A reply in progress. */
export interface LiveReply {
  message: Message;
  lastSeq: number;
  /** Where its text or thought that is still being written is among the parts; -1 if none is. */
  growingAt: number;
  /** The model call that runs, from 1. */
  iteration: number;
  /** The step or model call of an agent in code that speaks; empty if the program itself does. */
  voice: string | null;
  progress: Record<string, ToolProgress>;
  /** How many parts there were each time the turn was continued after an interruption. */
  resumedAt: readonly number[];
}

/** A reply before its first event: the events bring everything that was known of it. */
export function startReply(message: Message): LiveReply {
  return {
    message: { ...message, parts: [], usage: null, cost: null, tokenCount: null },
    lastSeq: 0,
    growingAt: -1,
    iteration: 0,
    voice: null,
    progress: {},
    resumedAt: [],
  };
}

export function foldAll(reply: LiveReply, events: readonly TurnEvent[]): LiveReply {
  return events.reduce(fold, reply);
}

/** The reply after one more event; an event that was seen before changes nothing. */
export function fold(reply: LiveReply, event: TurnEvent): LiveReply {
  if (event.seq <= reply.lastSeq) return reply;
  return { ...apply(reply, event), lastSeq: event.seq };
}

function apply(reply: LiveReply, event: TurnEvent): LiveReply {
  const { iteration } = reply;
  switch (event.type) {
    case "turn_start":
      return withMessage(reply, { status: "STREAMING", model: event.model ?? reply.message.model });
    case "iteration_start":
      return { ...close(reply, event.at), iteration: event.iteration, voice: event.step_id ?? null };
    case "iteration_restart": {
      const keepsDone = event.step_id !== undefined;
      return { ...supersede(close(reply, event.at), event.iteration, keepsDone), iteration: event.iteration };
    }
    case "step":
      return step(reply, event);
    case "turn_resumed": {
      // What a program itself says goes on where it was cut off.
      const now = reply.voice === "" ? reply : close(reply, event.at);
      return { ...now, resumedAt: [...reply.resumedAt, now.message.parts.length] };
    }
    case "user_message": {
      const { message_id: messageId, content: text } = event;
      return append(close(reply, event.at), { type: "user_text", messageId, text, iteration });
    }
    case "approval_request":
      return request(close(reply, event.at), event);
    case "approval_response":
      return respond(reply, event);
    case "text":
    case "thought":
      return grow(reply, event.type, event.text, event.at);
    case "retrieval": {
      const { query, tool_call_id: toolCallId } = event;
      const part: PartOf<"retrieval"> = { type: "retrieval", query, hits: event.hits.map(hitOf), iteration };
      return append(close(reply, event.at), toolCallId == null ? part : { ...part, toolCallId });
    }
    case "tool_call":
      return append(close(reply, event.at), {
        type: "tool_call",
        toolCallId: event.tool_call_id,
        toolName: event.tool_name,
        server: event.server,
        arguments: event.arguments,
        status: "running",
        result: null,
        durationMs: null,
        iteration,
        ...(event.parent_id !== undefined && { parentId: event.parent_id }),
      });
    case "tool_progress": {
      const { tool_call_id: id, progress, total, message } = event;
      return { ...reply, progress: { ...reply.progress, [id]: { progress, total, message } } };
    }
    case "tool_result":
      return endCall(reply, event);
    case "notice": {
      const { code, message } = event;
      return append(close(reply, event.at), { type: "notice", code, message, iteration });
    }
    case "usage":
      return spend(close(reply, event.at), event);
    case "done":
      return withMessage(endSteps(close(reply, event.at)), {
        status: event.status,
        completedAt: time(event.at),
        ...(event.output !== undefined && { output: event.output }),
      });
    case "error": {
      const { code, message, retryable } = event;
      const error = { code, message, retryable };
      return withMessage(endSteps(close(reply, event.at)), { status: "FAILED", completedAt: time(event.at), error });
    }
    default:
      // A server that was updated while this page is open sends what the page doesn't know: it is skipped.
      event satisfies never;
      return reply;
  }
}

function grow(reply: LiveReply, type: "text" | "thought", text: string, at: number): LiveReply {
  const growing = reply.message.parts[reply.growingAt];
  if (growing?.type === type) return withPartAt(reply, reply.growingAt, until({ ...growing, text: growing.text + text }, at));
  const { iteration } = reply;
  const part: Part =
    type === "text" ? { type, text, iteration } : { type, text, startedAt: time(at), durationMs: 0, iteration };
  return { ...append(close(reply, at), part), growingAt: reply.message.parts.length };
}

/** Something else begins: the text or thought that was being written is complete. */
function close(reply: LiveReply, at: number): LiveReply {
  const growing = reply.message.parts[reply.growingAt];
  return growing ? { ...withPartAt(reply, reply.growingAt, until(growing, at)), growingAt: -1 } : reply;
}

/** A part as long as it has taken up to now; only thoughts have a duration of their own. */
function until(part: Part, at: number): Part {
  if (part.type !== "thought") return part;
  // Clocks are set back, and nodes have their own.
  return { ...part, durationMs: Math.max(at - Date.parse(part.startedAt), 0) };
}

function endCall(reply: LiveReply, event: TurnEvent & { type: "tool_result" }): LiveReply {
  const ended = withResult(reply, event);
  return (event.images ?? []).reduce((shown, it) => append(shown, imagePart(it, event.tool_call_id, reply.iteration)), ended);
}

function imagePart(image: EventImage, toolCallId: string, iteration: number): FilePartView {
  const { file_id: fileId, file_name: fileName, media_type: mediaType, size, width, height } = image;
  return { type: "file", fileId, fileName, mediaType, size, width, height, toolCallId, iteration };
}

function withResult(reply: LiveReply, event: TurnEvent & { type: "tool_result" }): LiveReply {
  return withPart(
    reply,
    (part) => part.type === "tool_call" && part.toolCallId === event.tool_call_id,
    (part) => ({
      ...(part as ToolCallPartView),
      status: event.status,
      result: event.result ?? null,
      durationMs: event.duration_ms,
      ...(event.error !== undefined && { error: event.error }),
      ...(event.chart_data !== undefined && { chartData: event.chart_data }),
      ...(event.artifact_ids?.length && { artifactIds: event.artifact_ids }),
    }),
  );
}

/**
 * A model call or a step is made again: what there was of it stays visible and counts for nothing; of a step only what
 * it said, because calls, steps and questions in between are others'.
 */
function supersede(reply: LiveReply, iteration: number, keepsDone: boolean): LiveReply {
  const isOver = (part: Part) => part.iteration === iteration && !(keepsDone && isDone(part));
  const parts = reply.message.parts.map((part) => (isOver(part) ? { ...part, superseded: true } : part));
  return withMessage(reply, { parts });
}

/** Whether a part is more than what somebody said: something was done, asked or sent. */
function isDone(part: Part): boolean {
  return ["step", "question", "user_text"].includes(part.type) || ("toolCallId" in part && part.toolCallId != null);
}

/** A step begins, or ends. It ends a text of the program; what another step or model call says goes on before it. */
function step(reply: LiveReply, event: TurnEvent & { type: "step" }): LiveReply {
  const { step_id: stepId, name, status, title = null, duration_ms: durationMs = null } = event;
  const { parts } = reply.message;
  const begunAt = parts.findIndex((part) => part.type === "step" && part.stepId === stepId);
  if (begunAt >= 0) return withPartAt(reply, begunAt, { ...(parts[begunAt] as StepPartView), status, durationMs });
  return append(reply.voice ? reply : close(reply, event.at), {
    type: "step",
    stepId,
    name,
    title,
    status,
    startedAt: time(event.at),
    durationMs,
    iteration: reply.iteration,
    ...(event.agent !== undefined && { agent: event.agent }),
    ...(event.parent_id !== undefined && { parentId: event.parent_id }),
  });
}

/** The turn is over: of a step without an end, nobody knows how it ended. */
function endSteps(reply: LiveReply): LiveReply {
  const ended = (part: Part): Part => (part.type === "step" && part.status === "running" ? { ...part, status: "unknown" } : part);
  return withMessage(reply, { parts: reply.message.parts.map(ended) });
}

/** The turn asks its user or the client: about a tool call, which has the request, or for an answer. */
function request(reply: LiveReply, event: TurnEvent & { type: "approval_request" }): LiveReply {
  const { request_id: requestId, message, tool_call_id: toolCallId, schema, url } = event;
  const expiresAt = time(event.expires_at);
  if ((event.kind === "tool" || event.kind === "client_tool") && toolCallId !== undefined) {
    const about = event.kind === "tool" ? "approval" : "clientRequest";
    return withPart(
      reply,
      (part) => part.type === "tool_call" && part.toolCallId === toolCallId,
      (part) => ({ ...(part as ToolCallPartView), [about]: { requestId, message, expiresAt } }),
    );
  }
  return append(reply, {
    type: "question",
    requestId,
    message,
    expiresAt,
    iteration: reply.iteration,
    ...(toolCallId !== undefined && { toolCallId }),
    ...(schema !== undefined && { schema }),
    ...(url !== undefined && { url }),
  });
}

function respond(reply: LiveReply, event: TurnEvent & { type: "approval_response" }): LiveReply {
  const { request_id: id, action, scope = "once", arguments: edited, content } = event;
  const at = time(event.at);
  return withPart(
    reply,
    (part) => requestOf(part)?.requestId === id,
    (part) => {
      if (part.type === "question")
        return { ...part, answer: { action, at, ...(content !== undefined && { content }) } };
      const call = part as ToolCallPartView;
      const about = call.clientRequest ? "clientRequest" : "approval";
      return { ...call, [about]: { ...call[about]!, action, scope, at, ...(edited !== undefined && { arguments: edited }) } };
    },
  );
}

function spend(reply: LiveReply, event: TurnEvent & { type: "usage" }): LiveReply {
  const spent = reply.message.usage;
  // A log that an older version wrote does not know of caches.
  const usage = {
    inputTokens: (spent?.inputTokens ?? 0) + event.input_tokens,
    outputTokens: (spent?.outputTokens ?? 0) + event.output_tokens,
    cacheReadTokens: (spent?.cacheReadTokens ?? 0) + (event.cache_read_tokens ?? 0),
    cacheWriteTokens: (spent?.cacheWriteTokens ?? 0) + (event.cache_write_tokens ?? 0),
    estimated: (spent?.estimated ?? false) || event.estimated,
  };
  const model = event.model ?? reply.message.model;
  return withMessage(reply, { usage, cost: costWith(reply, event), model, tokenCount: usage.outputTokens });
}

/** What the reply has cost with one more call; what used nothing costs nothing. */
function costWith({ message }: LiveReply, event: TurnEvent & { type: "usage" }): CostView | null {
  if (!message.usage?.inputTokens && !message.usage?.outputTokens) return event.cost ?? null;
  if (!event.input_tokens && !event.output_tokens) return message.cost ?? null;
  return addCosts(message.cost, event.cost);
}

function hitOf(hit: RetrievalHit): RetrievalHitView {
  return {
    source: hit.source,
    text: hit.text,
    score: hit.score,
    ...(hit.chunk_id != null && { chunkId: hit.chunk_id }),
    ...(hit.document_id != null && { documentId: hit.document_id }),
    ...(hit.page != null && { page: hit.page }),
    ...(hit.url != null && { url: hit.url }),
    ...(hit.file_name != null && { fileName: hit.file_name }),
  };
}

function append(reply: LiveReply, part: Part): LiveReply {
  return withMessage(reply, { parts: [...reply.message.parts, part] });
}

function withPartAt(reply: LiveReply, at: number, part: Part): LiveReply {
  return withMessage(reply, { parts: reply.message.parts.with(at, part) });
}

/** The reply with its latest such part changed. */
function withPart(reply: LiveReply, isWanted: (part: Part) => boolean, change: (part: Part) => Part): LiveReply {
  const { parts } = reply.message;
  const at = parts.findLastIndex(isWanted);
  return at < 0 ? reply : withMessage(reply, { parts: parts.with(at, change(parts[at]!)) });
}

function withMessage(reply: LiveReply, change: Partial<Message>): LiveReply {
  return { ...reply, message: { ...reply.message, ...change } };
}

function time(at: number): string {
  return new Date(at).toISOString();
}
