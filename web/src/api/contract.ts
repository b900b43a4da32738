/** What `schema.ts` does not have yet of approvals and queued messages, named as the API names it. */

import { type ApprovalScope, type ConversationDetailView, type StartedTurnView } from "./schema";

/** An open request, wherever it is. */
export interface ApprovalView {
  requestId: string;
  turnId: string;
  conversationId: string;
  kind: "tool" | "question" | "elicitation";
  message: string;
  toolName?: string | null;
  server?: string | null;
  arguments?: Record<string, unknown> | null;
  schema?: Record<string, unknown> | null;
  url?: string | null;
  createdAt: string;
  expiresAt: string;
}

export interface ApprovalsView {
  items: ApprovalView[];
}

/** What a person answers to a request. */
export interface ApprovalBody {
  action: "allow" | "deny" | "edit" | "answer";
  scope?: ApprovalScope;
  arguments?: Record<string, unknown>;
  /** A string for a question, an object for a form, nothing for a URL. */
  content?: unknown;
}

export type WhenBusy = "reject" | "queue" | "steer";

/** A message that is sent when the turn has ended; `held`: not before its user sends something. */
export interface QueuedMessageView {
  messageId: string;
  content: string;
  files?: string[];
  createdAt: string;
  held: boolean;
  /** It joins the running turn before the next model call, unless the turn ends first. */
  steers?: true;
}

export type ConversationWithQueue = ConversationDetailView & { queued?: QueuedMessageView[] };

/** What became of a message: it started a turn, waits for its turn, or joins the one that runs. */
export type SentView =
  | StartedTurnView
  | { queued: true; messageId: string }
  | { steered: true; turnId: string; messageId: string };
