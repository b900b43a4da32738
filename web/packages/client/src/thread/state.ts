/** What a front end knows of one conversation. */

import { type Problem } from "../errors.ts";
import { type ConversationView, type QueuedMessageView } from "../schema.ts";
import { type LiveReply } from "../turn/fold.ts";
import { type Message } from "../turn/parts.ts";
import { waitsForUser } from "../turn/requests.ts";

export interface ThreadState {
  conversation: ConversationView | null;
  /** A part of the active path, oldest first. */
  messages: readonly Message[];
  hasOlder: boolean;
  /** Whether the user reads an older part, and what follows has not been read. */
  hasNewer: boolean;
  /** While the user reads an older part: the end of the path as it was last shown. */
  tip: string | null;
  /** The summary that replaces the archived messages in the model's context. */
  summary: string | null;
  loading: "all" | "older" | "newer" | null;
  /** The reply in progress. */
  live: LiveReply | null;
  /** From the click on Send until the server has taken the message. */
  sending: boolean;
  /** The outbox's entry for it, if it has one. */
  sendingId: string | null;
  /** What was shown before; it returns if the server refuses. */
  shownBefore: Pick<ThreadState, "messages" | "hasNewer"> | null;
  /** From the choice of another branch until it is shown. */
  choosing: boolean;
  /** What was sent while a turn ran, in the order in which it is taken. */
  queued: readonly PendingMessage[];
  stopping: boolean;
  connection: "good" | "lost";
  problem: Problem | null;
}

/** A message that no turn has taken yet. */
export interface PendingMessage extends Omit<QueuedMessageView, "steers"> {
  /** It joins the running turn or, with null, gets its own turn afterwards. */
  steers: string | null;
}

export const EMPTY_THREAD: ThreadState = {
  conversation: null,
  messages: [],
  hasOlder: false,
  hasNewer: false,
  tip: null,
  summary: null,
  loading: null,
  live: null,
  sending: false,
  sendingId: null,
  shownBefore: null,
  choosing: false,
  queued: [],
  stopping: false,
  connection: "good",
  problem: null,
};

const LOCAL = "local:";

export const PATH_CHANGED = "PATH_CHANGED";

/** Another client has chosen or continued another path. */
export const MOVED: Problem = { code: PATH_CHANGED, message: "" };

export function isRunning(state: ThreadState): boolean {
  return state.sending || state.live !== null;
}

/** Whether the turn does nothing until its user decides; a message ends it. */
export function isWaiting({ live }: ThreadState): boolean {
  return live !== null && waitsForUser(live.message.parts);
}

/** Whether a message sent now would be queued: behind a running turn, or other messages. */
export function mustQueue(state: ThreadState): boolean {
  return (state.live !== null && !isWaiting(state)) || state.queued.length > 0;
}

export function isLocalId(id: string): boolean {
  return id.startsWith(LOCAL);
}

/** An id for what the server has not taken yet. */
export function localId(name: string): string {
  return `${LOCAL}${name}`;
}

/** Whether the path cannot be changed now. */
export function isBusy(state: ThreadState): boolean {
  return isRunning(state) || state.choosing;
}

/** The last visible message: the server refuses an action taken while another path was shown. */
export function tipOf({ messages, hasNewer, tip }: ThreadState): string | null {
  return hasNewer ? tip : (messages.findLast((it) => !isLocalId(it.id))?.id ?? null);
}
