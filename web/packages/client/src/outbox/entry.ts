/** What the user has sent and the server has not acknowledged. Pure. */

import { type AnswerBody } from "../schema";
import { type KeptFile } from "../turn/files";

/** Whose entry it is, and on which server: it is never sent as somebody else, or elsewhere. */
export interface Account {
  server: string;
  userId: string;
}

export interface OutgoingFile {
  /** Names it on this page. */
  key: string;
  fileName: string;
  mediaType: string;
  size: number;
  /** The file as the server has it; null until it is uploaded. */
  kept: KeptFile | null;
  /** Its content, if this browser has it: the server forgets a file that no message uses. */
  source: Blob | null;
}

interface Common {
  /** Also the `Idempotency-Key`: however often it is sent, it happens once. */
  id: string;
  account: Account;
  createdAt: number;
}

export interface OutgoingMessage extends Common {
  kind: "message";
  /** Null until its conversation, which is new, has been created. */
  conversationId: string | null;
  /** The conversation's agent; null for the default one. */
  agentId: string | null;
  content: string;
  files: readonly OutgoingFile[];
  /** The end of the path as the user saw it. */
  tip?: string | null;
  /** The message that it replaces, and the one which both follow. */
  edited?: { id: string; parentId: string | null };
  /** What to do while a turn runs. */
  whenBusy?: "queue" | "steer";
  /** The turn that it steers. */
  steers?: string;
}

export interface OutgoingAnswer extends Common {
  kind: "answer";
  conversationId: string;
  turnId: string;
  requestId: string;
  body: AnswerBody;
}

export type Entry = OutgoingMessage | OutgoingAnswer;

/** Entries of one lane are sent in the order in which they were written. */
export function laneOf(entry: Entry): string {
  if (entry.kind === "answer") return `answer.${entry.requestId}`;
  return entry.conversationId === null ? `new.${entry.id}` : `conversation.${entry.conversationId}`;
}

export function isOf({ account }: Entry, { server, userId }: Account): boolean {
  return account.server === server && account.userId === userId;
}

export function inOrder(entries: readonly Entry[]): Entry[] {
  return entries.toSorted((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
}
