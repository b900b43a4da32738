/** What the page knows of one conversation, and how each thing that happens changes it. Pure. */

import { type ConversationDetailView, type ConversationView, type StartedTurnView } from "../api/schema";
import { foldAll, startReply, type LiveReply } from "../turn/fold";
import { type TurnEvent } from "../turn/events";
import { type Message } from "../turn/parts";

export interface ThreadState {
  conversation: ConversationView | null;
  /** Oldest first, those of other branches included. */
  messages: readonly Message[];
  hasOlder: boolean;
  /** Whether one reads an older part, and what follows has not been read. */
  hasNewer: boolean;
  /** What stands in the model's context for the archived messages. */
  summary: string | null;
  loading: "all" | "older" | "newer" | null;
  /** The reply that is being given. */
  live: LiveReply | null;
  /** From the click on Send until the server has taken the message. */
  sending: boolean;
  stopping: boolean;
  connection: "good" | "lost";
  problem: Problem | null;
}

export interface Problem {
  code: string;
  message: string;
}

export const EMPTY: ThreadState = {
  conversation: null,
  messages: [],
  hasOlder: false,
  hasNewer: false,
  summary: null,
  loading: null,
  live: null,
  sending: false,
  stopping: false,
  connection: "good",
  problem: null,
};

export type ThreadAction =
  | { type: "opening" }
  | { type: "made"; conversation: ConversationView }
  | { type: "read"; conversation: ConversationDetailView; messages: readonly Message[]; hasOlder: boolean }
  | { type: "reading"; what: "older" | "newer" }
  | { type: "readOlder"; messages: readonly Message[]; hasOlder: boolean }
  | { type: "readNewer"; messages: readonly Message[]; hasNewer: boolean }
  | { type: "jumped"; messages: readonly Message[]; hasOlder: boolean; hasNewer: boolean }
  | { type: "changed"; conversation: ConversationView }
  | { type: "sending"; content: string }
  | { type: "regenerating" }
  | { type: "refused"; problem: Problem }
  | { type: "started"; turn: StartedTurnView }
  | { type: "events"; turnId: string; events: readonly TurnEvent[] }
  | { type: "stopping" }
  | { type: "connection"; connection: "good" | "lost" }
  | { type: "ended"; turnId: string }
  | { type: "failed"; problem: Problem }
  | { type: "dismissed" };

const LOCAL = "local:";

export function isRunning(state: ThreadState): boolean {
  return state.sending || state.live !== null;
}

export function reduce(state: ThreadState, action: ThreadAction): ThreadState {
  switch (action.type) {
    case "opening":
      return { ...EMPTY, loading: "all" };
    case "made":
      return { ...state, conversation: action.conversation, loading: null };
    case "read": {
      const { messages: _, nextCursor: __, summary, ...conversation } = action.conversation;
      // What is newest does not follow on the older part that one reads.
      if (state.hasNewer) return withLive({ ...state, conversation, summary, loading: null });
      const known = state.messages.filter((it) => !it.id.startsWith(LOCAL) || state.sending);
      const messages = merged(known, action.messages);
      // A page that does not reach the older ones tells nothing of what lies before them.
      const hasOlder = state.loading === "all" || !state.messages.length ? action.hasOlder : state.hasOlder;
      return withLive({ ...state, conversation, messages, hasOlder, summary, loading: null });
    }
    case "reading":
      return { ...state, loading: action.what };
    case "readOlder":
      return {
        ...state,
        messages: merged(state.messages, action.messages),
        hasOlder: action.hasOlder,
        loading: null,
      };
    case "readNewer": {
      const messages = merged(state.messages, action.messages);
      return withLive({ ...state, messages, hasNewer: action.hasNewer, loading: null });
    }
    case "jumped": {
      const { hasOlder, hasNewer } = action;
      return withLive({ ...state, messages: merged([], action.messages), hasOlder, hasNewer, loading: null });
    }
    case "changed":
      return { ...state, conversation: { ...state.conversation, ...action.conversation } };
    case "sending": {
      const asked = blank(state, "user", action.content, "COMPLETED", 1);
      const reply = blank(state, "assistant", "", "PENDING", 2);
      return { ...state, sending: true, problem: null, messages: [...state.messages, asked, reply] };
    }
    case "regenerating": {
      const last = state.messages.at(-1);
      const kept = state.messages.map((it) =>
        it === last && it.role === "assistant" ? { ...it, status: "OVERWRITTEN" as const } : it,
      );
      const reply = { ...blank(state, "assistant", "", "PENDING", 1), parentId: last?.parentId ?? null };
      return { ...state, sending: true, problem: null, messages: [...kept, reply] };
    }
    case "refused": {
      const messages = state.messages.filter((it) => !it.id.startsWith(LOCAL));
      return { ...state, sending: false, stopping: false, problem: action.problem, messages };
    }
    case "started": {
      const ids = { user: action.turn.userMessageId, assistant: action.turn.assistantMessageId };
      const named = state.messages.map((it) =>
        it.id.startsWith(LOCAL) ? { ...it, id: ids[it.role as "user" | "assistant"], turnId: action.turn.turnId } : it,
      );
      const conversation = state.conversation && { ...state.conversation, activeTurnId: action.turn.turnId };
      // They may have been read meanwhile.
      return withLive({ ...state, sending: false, messages: merged([], named), conversation });
    }
    case "events": {
      if (state.live?.message.turnId !== action.turnId) return state;
      const live = foldAll(state.live, action.events);
      return { ...state, live, messages: withReply(state, live), connection: "good" };
    }
    case "stopping":
      return { ...state, stopping: true };
    case "connection":
      return { ...state, connection: action.connection };
    case "ended": {
      if (state.live?.message.turnId !== action.turnId) return state;
      const conversation = state.conversation && { ...state.conversation, activeTurnId: null };
      return { ...state, live: null, stopping: false, connection: "good", conversation };
    }
    case "failed":
      return { ...state, loading: null, problem: action.problem };
    case "dismissed":
      return { ...state, problem: null };
  }
}

/** The reply of the turn that runs is told anew from its first event. */
function withLive(state: ThreadState): ThreadState {
  const turnId = state.conversation?.activeTurnId;
  if (!turnId) return { ...state, live: null, stopping: false };
  if (state.live?.message.turnId === turnId) {
    // What we have folded is as new as what was read, or newer.
    return { ...state, messages: withReply(state, state.live) };
  }
  const reply = state.messages.findLast((it) => it.turnId === turnId && it.role === "assistant");
  return { ...state, live: reply ? startReply(reply) : null };
}

function merged(known: readonly Message[], read: readonly Message[]): Message[] {
  const byId = new Map(known.map((it) => [it.id, it]));
  for (const message of read) byId.set(message.id, message);
  return [...byId.values()].sort((a, b) => a.seq - b.seq);
}

/** The messages with what the running turn has said so far; one who reads an older part does not see it. */
function withReply({ messages, hasNewer }: ThreadState, { message }: LiveReply): readonly Message[] {
  const at = messages.findLastIndex((it) => it.id === message.id);
  if (at >= 0) return messages.with(at, { ...message, seq: messages[at]!.seq });
  return hasNewer ? messages : [...messages, message];
}

function blank(
  state: ThreadState,
  role: "user" | "assistant",
  text: string,
  status: Message["status"],
  ahead: number,
): Message {
  const seq = (state.messages.at(-1)?.seq ?? 0) + ahead;
  return {
    id: `${LOCAL}${role}`,
    conversationId: state.conversation?.id ?? "",
    seq,
    parentId: null,
    turnId: null,
    runId: null,
    role,
    parts: text ? [{ type: "text", text, iteration: 0 }] : [],
    status,
    tokenCount: null,
    usage: null,
    model: null,
    archived: false,
    createdAt: new Date().toISOString(),
    completedAt: null,
  };
}
