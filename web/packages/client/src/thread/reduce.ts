/** How each thing that happens in a conversation changes what is known of it. Pure. */

import { type Problem } from "../errors.ts";
import { type ConversationDetailView, type ConversationView, type FeedbackView, type QueuedMessageView, type StartedTurnView } from "../schema.ts";
import { type TurnEvent } from "../turn/events.ts";
import { filePart, type KeptFile } from "../turn/files.ts";
import { foldAll, startReply, type LiveReply } from "../turn/fold.ts";
import { type Message } from "../turn/parts.ts";
import { appended, messagesBefore, withSibling } from "./path.ts";
import { EMPTY_THREAD, MOVED, PATH_CHANGED, isLocalId, localId, tipOf, type PendingMessage, type ThreadState } from "./state.ts";

export type ThreadAction =
  | { type: "opening" }
  | { type: "created"; conversation: ConversationView }
  /** The latest messages were read; `whole`: show them even if the user reads an older part. */
  | { type: "read"; conversation: ConversationDetailView; whole?: boolean }
  | { type: "reading"; what: "older" | "newer" }
  | { type: "readOlder"; messages: readonly Message[]; hasOlder: boolean }
  | { type: "readNewer"; messages: readonly Message[]; hasNewer: boolean }
  | { type: "choosing" }
  /** Another branch was chosen: `messages` replace `replaced` and everything below. */
  | { type: "chosen"; conversation: ConversationDetailView; replaced: Message; messages: readonly Message[]; hasNewer: boolean }
  | { type: "jumped"; messages: readonly Message[]; hasOlder: boolean; hasNewer: boolean }
  | { type: "settled" }
  | { type: "changed"; conversation: ConversationView }
  | { type: "sending"; entryId?: string; content: string; files?: readonly KeptFile[]; edited: Message | null }
  | { type: "regenerating"; replaced: Message }
  | { type: "refused"; problem: Problem }
  | { type: "started"; turn: StartedTurnView }
  /** The server queued the message, or its user took it back: the turn shown for it is removed. */
  | { type: "deferred" }
  /** A message is on its way into the queue, or into the turn that runs. */
  | { type: "queueing"; message: PendingMessage }
  /** The server accepted it: under this id, or as its own turn. */
  | { type: "queued"; localId: string; messageId: string | null }
  /** The user edited a queued message, or removed it (null). */
  | { type: "queuedChanged"; messageId: string; content: string | null }
  | { type: "events"; turnId: string; events: readonly TurnEvent[] }
  /** The user rated a reply, or took the rating back (undefined). */
  | { type: "rated"; messageId: string; feedback: FeedbackView | undefined }
  | { type: "stopping" }
  | { type: "connection"; connection: "good" | "lost" }
  | { type: "ended"; turnId: string }
  | { type: "failed"; problem: Problem }
  | { type: "dismissed" };

const SENT = { sending: false, sendingId: null, shownBefore: null } as const;

export function reduce(state: ThreadState, action: ThreadAction): ThreadState {
  switch (action.type) {
    case "opening":
      return { ...EMPTY_THREAD, loading: "all" };
    case "created":
      return { ...state, conversation: action.conversation, loading: null };
    case "read": {
      const { messages, nextCursor, summary, queued = [], ...conversation } = action.conversation;
      const next = { ...state, conversation, summary, queued: pending(state, action.conversation, queued), loading: null };
      if (state.sending) return withLive(next);
      // What is newest does not follow on the older part that the user reads; if it is on another path, they are asked.
      if (state.hasNewer && !action.whole) {
        const isMoved = state.tip !== null && messages.every((it) => it.id !== state.tip);
        return withLive(isMoved ? { ...next, problem: MOVED } : next);
      }
      const all = nextCursor === null ? null : appended(state.messages, messages);
      const problem = state.problem?.code === PATH_CHANGED ? null : state.problem;
      return withLive({
        ...next,
        messages: all ?? messages,
        hasOlder: all ? state.hasOlder : nextCursor !== null,
        hasNewer: false,
        problem,
      });
    }
    case "reading":
      return { ...state, loading: action.what };
    case "readOlder":
      return { ...state, messages: [...action.messages, ...state.messages], hasOlder: action.hasOlder, loading: null };
    case "readNewer": {
      const messages = [...state.messages, ...action.messages];
      return withLive({ ...state, messages, hasNewer: action.hasNewer, loading: null });
    }
    case "jumped": {
      const { messages, hasOlder, hasNewer } = action;
      return withLive({ ...state, messages, hasOlder, hasNewer, tip: tipOf(state), loading: null });
    }
    case "choosing":
      return { ...state, choosing: true, problem: null };
    case "chosen": {
      const { messages: latest, nextCursor: _, summary, queued: __, ...conversation } = action.conversation;
      const messages = [...messagesBefore(state.messages, action.replaced), ...action.messages];
      const { hasNewer } = action;
      const tip = latest.at(-1)?.id ?? null;
      return withLive({ ...state, conversation, summary, messages, hasNewer, tip, loading: null });
    }
    case "settled":
      return { ...state, choosing: false };
    case "changed":
      return { ...state, conversation: { ...state.conversation, ...action.conversation } };
    case "sending": {
      const { content, files = [], edited } = action;
      const kept = edited ? messagesBefore(state.messages, edited) : state.messages;
      const asked = blank(state, "user", content, kept.at(-1), files);
      const reply = blank(state, "assistant", "", asked);
      const messages = [...kept, edited ? { ...asked, siblings: withSibling(edited, asked.id) } : asked, reply];
      return { ...start(state, messages), sendingId: action.entryId ?? null };
    }
    case "regenerating": {
      const kept = messagesBefore(state.messages, action.replaced);
      const reply = blank(state, "assistant", "", kept.at(-1));
      return start(state, [...kept, { ...reply, siblings: withSibling(action.replaced, reply.id) }]);
    }
    case "refused": {
      const { problem } = action;
      return { ...state, ...state.shownBefore, ...SENT, choosing: false, stopping: false, problem };
    }
    case "started": {
      const { turnId } = action.turn;
      const ids: Record<string, string> = {
        [localId("user")]: action.turn.userMessageId,
        [localId("assistant")]: action.turn.assistantMessageId,
      };
      const messages = state.messages.map((it) => (isLocalId(it.id) ? named({ ...it, turnId }, ids) : it));
      const conversation = state.conversation && { ...state.conversation, activeTurnId: turnId };
      return withLive({ ...state, ...SENT, messages, conversation });
    }
    case "events": {
      if (state.live?.message.turnId !== action.turnId) return state;
      const live = foldAll(state.live, action.events);
      const queued = untaken(state.queued, live);
      return { ...state, live, queued, messages: withReply(state, live), connection: "good" };
    }
    case "deferred":
      return { ...state, ...state.shownBefore, ...SENT };
    case "queueing":
      return { ...state, queued: [...state.queued, action.message], problem: null };
    case "queued": {
      const { localId, messageId } = action;
      const isKnown = messageId === null || state.queued.some((it) => it.messageId === messageId);
      const queued = state.queued.flatMap((it) => {
        if (it.messageId !== localId) return [it];
        return isKnown ? [] : [{ ...it, messageId }];
      });
      return { ...state, queued: state.live ? untaken(queued, state.live) : queued };
    }
    case "queuedChanged": {
      const { messageId, content } = action;
      const queued = state.queued.flatMap((it) => {
        if (it.messageId !== messageId) return [it];
        return content === null ? [] : [{ ...it, content }];
      });
      return { ...state, queued };
    }
    case "rated": {
      const { messageId, feedback } = action;
      return { ...state, messages: state.messages.map((it) => (it.id === messageId ? { ...it, feedback } : it)) };
    }
    case "stopping":
      return { ...state, stopping: true };
    case "connection":
      return state.connection === action.connection ? state : { ...state, connection: action.connection };
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

/** The reply of the running turn starts again from its first event. */
function withLive(state: ThreadState): ThreadState {
  const turnId = state.conversation?.activeTurnId;
  if (!turnId) return { ...state, live: null, stopping: false };
  if (state.live?.message.turnId === turnId) {
    // Our folded reply is at least as new as the loaded one.
    return { ...state, messages: withReply(state, state.live) };
  }
  const reply = state.messages.findLast((it) => it.turnId === turnId && it.role === "assistant");
  return { ...state, live: reply ? startReply(reply) : null };
}

/** The queue as the server has it, with what it does not list yet. */
function pending(
  { queued: known }: ThreadState,
  { activeTurnId, messages }: ConversationDetailView,
  queued: readonly QueuedMessageView[],
): PendingMessage[] {
  const listed = new Set(queued.map((it) => it.messageId));
  const taken = new Set(messages.flatMap(takenIn));
  const own = known.filter(
    ({ messageId, steers }) =>
      !listed.has(messageId) && !taken.has(messageId) && (isLocalId(messageId) || (steers !== null && steers === activeTurnId)),
  );
  const read = queued.map((it) => ({ ...it, steers: it.steers ? activeTurnId : null }));
  const all = [...read.filter((it) => !taken.has(it.messageId)), ...own];
  // Messages that join the running turn come before those that wait for its end.
  return [...all.filter((it) => it.steers !== null), ...all.filter((it) => it.steers === null)];
}

/** What a turn has not taken in yet. */
function untaken(queued: readonly PendingMessage[], { message }: LiveReply): readonly PendingMessage[] {
  if (!queued.length) return queued;
  const taken = new Set(takenIn(message));
  return queued.some((it) => taken.has(it.messageId)) ? queued.filter((it) => !taken.has(it.messageId)) : queued;
}

function takenIn({ parts }: Message): string[] {
  return parts.flatMap((part) => (part.type === "user_text" && part.messageId ? [part.messageId] : []));
}

/** What is shown from the click on. */
function start(state: ThreadState, messages: readonly Message[]): ThreadState {
  const shownBefore = { messages: state.messages, hasNewer: state.hasNewer };
  return { ...state, messages, hasNewer: false, loading: null, sending: true, shownBefore, problem: null };
}

/** A message with the server's ids. */
function named(message: Message, ids: Record<string, string>): Message {
  const { siblings, parentId } = message;
  const real = (id: string) => ids[id] ?? id;
  const renamed = { ...message, id: real(message.id), parentId: parentId && real(parentId) };
  return siblings ? { ...renamed, siblings: { ...siblings, ids: siblings.ids.map(real) } } : renamed;
}

/** The messages with the running turn's output so far; a user who reads an older part doesn't see it. */
function withReply({ messages, hasNewer }: ThreadState, { message }: LiveReply): readonly Message[] {
  const at = messages.findLastIndex((it) => it.id === message.id);
  if (at >= 0) {
    const { seq, siblings } = messages[at]!;
    return messages.with(at, { ...message, seq, siblings });
  }
  return hasNewer ? messages : [...messages, message];
}

/** A message of this page's own, until the server has taken it. */
function blank(
  state: ThreadState,
  role: "user" | "assistant",
  text: string,
  parent: Message | undefined,
  files: readonly KeptFile[] = [],
): Message {
  return {
    id: localId(role),
    conversationId: state.conversation?.id ?? "",
    seq: (parent?.seq ?? 0) + 1,
    parentId: parent?.id ?? null,
    turnId: null,
    runId: null,
    role,
    parts: [...files.map(filePart), ...(text ? [{ type: "text" as const, text, iteration: 0 }] : [])],
    status: role === "user" ? "COMPLETED" : "PENDING",
    tokenCount: null,
    usage: null,
    cost: null,
    model: null,
    archived: false,
    createdAt: new Date().toISOString(),
    completedAt: null,
  };
}
