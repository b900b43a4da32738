/** What the user has sent and the server has not acknowledged. Pure. */

import { ApiError } from "../errors.ts";
import { refusedResult } from "../refused-result.ts";
import { type AnswerBody, type ClientToolBody } from "../schema.ts";
import { type KeptFile } from "../turn/files.ts";

/** Whose entry it is, and on which server: it is never sent as somebody else, or elsewhere. */
export interface Account {
  /** Its address. */
  server: string;
  userId: string;
  /** Which server it is: there may be another one at the address by now. Entries of older front ends have none. */
  installation?: string;
}

export interface OutgoingFile {
  /** Identifies it until the server has it. */
  key: string;
  fileName: string;
  mediaType: string;
  size: number;
  /** The file as the server has it; null until it is uploaded. */
  kept: KeptFile | null;
  /** Its content, if this device has it: the server forgets a file that no message uses. */
  source: Blob | null;
}

interface EntryHead {
  /** Also the `Idempotency-Key`: however often it is sent, it happens once. */
  id: string;
  account: Account;
  createdAt: number;
}

export interface OutgoingMessage extends EntryHead {
  kind: "message";
  /** Null until its conversation, which is new, has been created. */
  conversationId: string | null;
  /** The conversation's agent; null for the default one. */
  agentId: string | null;
  content: string;
  files: readonly OutgoingFile[];
  /** The model that the user chose; the agent's own if missing. */
  model?: string;
  /** The end of the path as the user saw it. */
  tip?: string | null;
  /** The message that it replaces, and the one which both follow. */
  edited?: { id: string; parentId: string | null };
  /** What to do while a turn runs. */
  whenBusy?: "queue" | "steer" | "stop";
  /** The turn that it steers. */
  steers?: string;
  /** What the model may call here. */
  tools?: readonly ClientToolBody[];
}

/** Whether it waits for its turn behind others. */
export function isQueued({ whenBusy }: OutgoingMessage): boolean {
  return whenBusy === "queue" || whenBusy === "steer";
}

/** What the user decided about a turn's request. */
export interface OutgoingDecision extends EntryHead {
  /** Not "decision": browsers have entries of this kind. */
  kind: "answer";
  conversationId: string;
  turnId: string;
  requestId: string;
  body: AnswerBody;
  /** It is what a tool returned: if the server refuses it, the turn gets that as its result, since nobody else waits for it. */
  tellsRefusal?: boolean;
}

export type OutboxEntry = OutgoingMessage | OutgoingDecision;

/** What the user has written, before the outbox makes an entry of it. */
export type NewEntry = NewMessage | Omit<OutgoingDecision, keyof EntryHead>;
export type NewMessage = Omit<OutgoingMessage, keyof EntryHead>;

/** Entries of one lane are sent in the order in which they were written. */
export function laneOf(entry: OutboxEntry): string {
  if (entry.kind === "answer") return `answer.${entry.requestId}`;
  return entry.conversationId === null ? `new.${entry.id}` : `conversation.${entry.conversationId}`;
}

export function isOf({ account }: OutboxEntry, { server, userId, installation }: Account): boolean {
  return account.server === server && account.userId === userId && account.installation === installation;
}

/** Whether it is this user's, and nobody noted for which of the servers at this address it was written. */
export function isOfUnknownServer(entry: OutboxEntry, account: Account): boolean {
  return account.installation !== undefined && isOf(entry, { ...account, installation: undefined });
}

/** Sorts entries in the order in which they were written. */
export function compareEntries(a: OutboxEntry, b: OutboxEntry): number {
  return a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
}

/** The entry without the server's copy of a file, if this device can upload it again. */
export function withoutCopy(entry: OutboxEntry, fileId: string | null): OutgoingMessage | null {
  if (entry.kind !== "message" || fileId === null) return null;
  if (!entry.files.some((it) => it.kept?.fileId === fileId && it.source)) return null;
  return { ...entry, files: entry.files.map((it) => (it.kept?.fileId === fileId ? { ...it, kept: null } : it)) };
}

/** The entry with which the turn learns why its tool's result was refused; null if it needn't, or has. */
export function tellingRefusal(entry: OutboxEntry, error: unknown): OutgoingDecision | null {
  if (entry.kind !== "answer" || !entry.tellsRefusal || !(error instanceof ApiError)) return null;
  const body = refusedResult(error);
  return body && { ...entry, body, tellsRefusal: false };
}

/** A file as it is shown before the server has it: by name. */
export function shownFile({ key, fileName, size, kept }: OutgoingFile): KeptFile {
  return kept ?? { fileId: key, fileName, mediaType: "", size, width: null, height: null };
}

/** A file that the user has chosen, as a message takes it. */
export function outgoingFile(source: File, key: string): OutgoingFile {
  const { name: fileName, type: mediaType, size } = source;
  return { key, fileName, mediaType, size, kept: null, source };
}
