import {
  EMPTY_THREAD,
  Store,
  freshKey,
  isRunning,
  isWaiting,
  openRequests,
  outgoingFile,
  problemOf,
  type AnswerBody,
  type ConversationView,
  type FrontEnd,
  type Message,
  type OutgoingFile,
  type OutgoingMessage,
  type Problem,
  type Thread,
} from "@threadkeep/client";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";

import { useFrontEnd } from "./provider.tsx";
import { useStore } from "./use-store.ts";
import { useThread } from "./use-thread.ts";

export interface ConversationOptions {
  /** The agent of a new conversation; the server's default one if missing. */
  agentId?: string;
  /** A new conversation's first message has given it its id: show it from now on. */
  onCreated?: (id: string) => void;
  /** A message was refused, or withdrawn before it was sent: its text belongs back where it was written. */
  onReturned?: (message: OutgoingMessage) => void;
}

export interface ConversationSendOptions {
  /** The message that this one replaces, on a branch of its own. */
  edited?: Message;
  /** Whether it joins the turn that runs, instead of waiting for its end. */
  steers?: boolean;
  /** Whether it stops the turn that runs, whose text stays, and gets its own at once. */
  stops?: boolean;
  files?: readonly File[];
  /** The model that replies; the agent's own if missing. */
  model?: string;
}

const NO_THREAD = new Store(EMPTY_THREAD);

/** A conversation as it happens, and what its user can do in it. With null it is a new one, which the first message begins. */
export function useConversation(id: string | null, options: ConversationOptions = {}) {
  const frontEnd = useFrontEnd();
  const { begun, isBeginning, problem, begin, dismiss } = useBeginning(frontEnd, options);
  const thread = useMemo(() => (id === null ? null : begun?.id === id ? begun : frontEnd.open(id)), [frontEnd, id, begun]);
  useThread(thread);
  useReturned(frontEnd, id, options.onReturned);
  const state = useStore(thread?.state ?? NO_THREAD);
  const isReady = useStore(frontEnd.isStarted);
  const actions = useMemo(() => (thread ? actionsOn(thread) : { ...NO_ACTIONS, send: begin, dismiss }), [thread, begin, dismiss]);
  const { live, conversation, messages, queued, hasOlder, connection } = state;
  return {
    conversation,
    messages,
    /** What was sent while a turn ran and waits for its own. */
    queued,
    /** What the turn waits for: approvals of its calls, and questions. */
    requests: live ? openRequests(live.message.parts) : [],
    /** Whether something can be sent: who the user is is known. */
    isReady,
    isLoading: state.loading === "all",
    isRunning: isRunning(state) || isBeginning,
    isWaiting: isWaiting(state),
    isStopping: state.stopping,
    hasOlder,
    /** `lost`: the connection is opened again by itself. */
    connection,
    problem: thread ? state.problem : problem,
    ...actions,
  };
}

/** Begins a new conversation with its first message. */
function useBeginning(frontEnd: FrontEnd, { agentId, onCreated }: ConversationOptions) {
  const [begun, setBegun] = useState<Thread | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBeginning, setBeginning] = useState(false);
  /** The first message, until its conversation exists. */
  const firstId = useRef<string | null>(null);
  useEffect(
    () =>
      frontEnd.outbox.on((event) => {
        if (event.entry.id !== firstId.current || event.type === "waiting") return;
        firstId.current = null;
        setBeginning(false);
        if (event.type === "refused") setProblem(problemOf(event.error));
        if (event.type !== "created") return;
        const opened = frontEnd.open(event.conversation.id);
        opened.begin(event.conversation, event.entry);
        setBegun(opened);
        onCreated?.(opened.id);
      }),
    [frontEnd, onCreated],
  );
  const begin = useCallback(
    async (content: string, { files, model }: ConversationSendOptions = {}): Promise<boolean> => {
      if (firstId.current !== null || !frontEnd.isStarted.get()) return false;
      setProblem(null);
      const place = { conversationId: null, agentId: agentId ?? null };
      const entry = frontEnd.outbox.prepare({ kind: "message", ...place, content, files: outgoing(files), ...(model && { model }) });
      firstId.current = entry.id;
      setBeginning(true);
      await frontEnd.outbox.add(entry);
      return true;
    },
    [frontEnd, agentId],
  );
  const dismiss = useCallback(() => setProblem(null), []);
  return { begun, isBeginning, problem, begin, dismiss };
}

/** Gives back what the server refused, or what its user withdrew. */
function useReturned(frontEnd: FrontEnd, id: string | null, onReturned: ConversationOptions["onReturned"]): void {
  useEffect(
    () =>
      frontEnd.outbox.on(({ type, entry }) => {
        if (type !== "refused" && type !== "withdrawn") return;
        if (entry.kind === "message" && entry.conversationId === id) onReturned?.(entry);
      }),
    [frontEnd, id, onReturned],
  );
}

function actionsOn(thread: Thread) {
  return {
    /** Sends a message; true once it can no longer be lost. False if that isn't possible now: keep the text. */
    send: (content: string, { files, ...options }: ConversationSendOptions = {}): Promise<boolean> =>
      thread.sending.send(content, { ...options, files: outgoing(files) }),
    /** Stops the turn; what it has written stays. */
    stop: (): Promise<void> => thread.sending.stop(),
    /** Answers one of `requests`; false if its user withdrew the answer before it could be sent. */
    decide: async (requestId: string, body: AnswerBody): Promise<boolean> => {
      const turnId = thread.state.get().live?.message.turnId;
      return turnId ? thread.sending.decide(turnId, requestId, body) : false;
    },
    /** Asks for another reply, beside the old one. */
    regenerate: (reply: Message, model?: string): Promise<boolean> => thread.branches.regenerate(reply, model),
    /** Shows another version of a message, one of its `siblings.ids`, and what follows it. */
    choose: (message: Message, siblingId: string): Promise<void> => thread.branches.choose(siblingId, message),
    /** A new conversation with everything up to a message. */
    fork: (message: Message): Promise<ConversationView | null> => thread.branches.fork(message.id),
    /** Shows the path that another client has chosen, when the problem is `PATH_CHANGED`. */
    showPath: (): Promise<void> => thread.branches.showPath(),
    readOlder: (): Promise<void> => thread.reading.readOlder(),
    editQueued: (messageId: string, content: string): Promise<void> => thread.queue.edit(messageId, content),
    removeQueued: (messageId: string): Promise<void> => thread.queue.remove(messageId),
    /** Sends a held message now. */
    sendHeld: (messageId: string): Promise<void> => thread.queue.sendHeld(messageId),
    /** Hides the problem. */
    dismiss: (): void => thread.dismiss(),
  };
}

const nothing = async (): Promise<void> => {};
const no = async (): Promise<boolean> => false;

/** Before the first message there is nothing to do but to send it. */
const NO_ACTIONS: Omit<ReturnType<typeof actionsOn>, "send" | "dismiss"> = {
  stop: nothing,
  decide: no,
  regenerate: no,
  choose: nothing,
  fork: async () => null,
  showPath: nothing,
  readOlder: nothing,
  editQueued: nothing,
  removeQueued: nothing,
  sendHeld: nothing,
};

function outgoing(files: readonly File[] = []): OutgoingFile[] {
  return files.map((file) => outgoingFile(file, freshKey()));
}
