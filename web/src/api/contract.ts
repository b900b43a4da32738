/** What `schema.ts` does not have yet of approvals, named as the API names it. */

import { type ApprovalScope, type QueuedView, type StartedTurnView, type SteeredView } from "./schema";

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

/** What became of a message: it started a turn, waits for its turn, or joins the one that runs. */
export type SentView = StartedTurnView | QueuedView | SteeredView;
