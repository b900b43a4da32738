/** Turn events as the `events` dialect writes them: numbered from 1 without a gap. */

import { type ApprovalAction, type ApprovalScope, type CostView } from "../schema.ts";

interface Head {
  turn_id: string;
  seq: number;
  /** Milliseconds since the epoch. */
  at: number;
  /** The event was rebuilt from the message, because the log was deleted. */
  replayed?: boolean;
}

export interface RetrievalHit {
  source: string;
  text: string;
  score: number;
  chunk_id?: string | null;
  document_id?: string | null;
  page?: number | null;
  url?: string | null;
  file_name?: string | null;
}

export interface EventUsage {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  estimated: boolean;
  /** Absent if the price is unknown. */
  cost?: CostView;
}

export type EventBody =
  | { type: "turn_start"; conversation_id: string; user_message_id: string; message_id: string; model: string | null }
  | { type: "retrieval"; query: string; hits: RetrievalHit[]; tool_call_id?: string }
  /** `step_id`: in a turn of an agent in code, the step or model call whose text follows; "" is the program itself. */
  /** `is_checked`: the reply must fit a JSON schema, so that an `iteration_restart` may take back its text. */
  | { type: "iteration_start"; iteration: number; step_id?: string; is_checked?: boolean }
  /** Another node, or the same one after its restart, continues the turn. */
  | { type: "turn_resumed"; attempt: number }
  /** A model call restarts: its output so far is superseded. With `step_id`, only what that step said. */
  | { type: "iteration_restart"; iteration: number; from_seq: number; step_id?: string }
  /** The turn took in a message that its user sent while it ran. */
  | { type: "user_message"; message_id: string; content: string }
  | {
      type: "approval_request";
      request_id: string;
      kind: "tool" | "question" | "elicitation" | "client_tool";
      message: string;
      /** Milliseconds since the epoch. */
      expires_at: number;
      tool_call_id?: string;
      schema?: Record<string, unknown>;
      url?: string;
    }
  | {
      type: "approval_response";
      request_id: string;
      action: ApprovalAction;
      scope?: ApprovalScope;
      arguments?: Record<string, unknown>;
      content?: unknown;
    }
  | { type: "thought"; text: string }
  | { type: "text"; text: string }
  | {
      type: "tool_call";
      tool_call_id: string;
      tool_name: string;
      server: string;
      arguments: Record<string, unknown>;
      /** The step that ran the agent that called it, if another one did. */
      parent_id?: string;
    }
  | { type: "tool_progress"; tool_call_id: string; progress: number; total?: number; message?: string }
  | {
      type: "tool_result";
      tool_call_id: string;
      tool_name: string;
      status: "ok" | "error" | "timeout" | "denied" | "interrupted" | "unknown";
      result?: unknown;
      error?: string;
      duration_ms: number;
      chart_data?: unknown;
      artifact_ids?: string[];
      images?: EventImage[];
    }
  /** A step of an agent in code begins, and ends under the same id. */
  | {
      type: "step";
      step_id: string;
      name: string;
      title?: string;
      kind: "step" | "stream" | "agent";
      status: "running" | "ok" | "error" | "cancelled" | "unknown";
      duration_ms?: number;
      parent_id?: string;
      agent?: string;
    }
  | { type: "notice"; code: string; message: string }
  | ({ type: "usage"; model?: string } & EventUsage)
  | {
      type: "done";
      status: "COMPLETED" | "CANCELLED";
      message_id: string;
      usage: EventUsage;
      stop_reason: string;
      /** The reply as a value, if it is structured. */
      output?: unknown;
    }
  | { type: "error"; code: string; message: string; retryable: boolean };

/** An image that a tool returned. */
export interface EventImage {
  file_id: string;
  file_name: string;
  media_type: string;
  size: number;
  width: number;
  height: number;
}

export type TurnEvent = Head & EventBody;

export function isTerminal(event: TurnEvent): boolean {
  return event.type === "done" || event.type === "error";
}
