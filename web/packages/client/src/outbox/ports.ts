/** What the outbox needs from where it runs. */

import { type ApiError } from "../errors.ts";
import { type ConversationView, type QueuedView, type StartedTurnView, type SteeredView } from "../schema.ts";
import { type KeptFile } from "../turn/files.ts";
import { type OutboxEntry, type OutgoingFile } from "./entry.ts";

/** Where entries outlive the page. */
export interface EntryStore {
  all(): Promise<StoredEntry[]>;
  /** Undefined only if it is not there; throws if it can't be read. */
  get(id: string): Promise<OutboxEntry | undefined>;
  /** Whether it will still be there after a reload. */
  put(entry: OutboxEntry): Promise<boolean>;
  remove(id: string): Promise<void>;
}

export interface StoredEntry {
  entry: OutboxEntry;
  /** Whether it outlives the page. */
  lasts: boolean;
}

/** How entries reach the server. */
export interface OutboxTransport {
  upload(file: OutgoingFile): Promise<KeptFile>;
  /** The same key never creates a second conversation. */
  create(agentId: string | null, key: string): Promise<ConversationView>;
  send(entry: OutboxEntry): Promise<SentView>;
  /** The id of the server that responds; asked before anything of an entry is sent that was written for a certain one. */
  installation?(): Promise<string | undefined>;
}

/** The outcome of sending: the message started a turn, is queued, or joins the running turn. */
export type SentView = StartedTurnView | QueuedView | SteeredView;

/** The other tabs with an outbox of the same store. */
export interface OtherTabs {
  /** Runs `work` while no other tab runs work of the same name. */
  alone<T>(name: string, work: () => Promise<T>): Promise<T>;
  tell(message: OutboxTabMessage): void;
  /** Calls `hear` with what the other tabs report. */
  listen(hear: (message: OutboxTabMessage) => void): void;
}

export const NO_OTHER_TABS: OtherTabs = { alone: (_, work) => work(), tell: () => {}, listen: () => {} };

export type OutboxTabMessage =
  | { type: "stored" }
  | { type: "waiting" }
  /** It is no longer an entry. Tabs of older front ends don't say what became of it. */
  | { type: "gone"; id: string; became?: Became };

/** What became of an entry: the server has it or has refused it, or its user withdrew it. */
export type Became =
  | { type: "sent"; outcome: SentView; conversationId: string | null }
  | { type: "refused"; error: Refusal }
  | { type: "withdrawn" };

/** An `ApiError` as tabs pass it on: of an error, they get only the message. */
export type Refusal = Pick<ApiError, "status" | "code" | "message" | "details" | "param" | "retryAfterMs">;
