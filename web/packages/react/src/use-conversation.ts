import {
  EMPTY_THREAD,
  Store,
  canWithdraw,
  freshKey,
  isRunning,
  isWaiting,
  openRequests,
  outgoingFile,
  problemOf,
  reduce,
  shownFile,
  type AnswerBody,
  type ConversationView,
  type FrontEnd,
  type Message,
  type OutgoingFile,
  type OutgoingMessage,
  type Thread,
  type ThreadState,
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
  const { begun, beginning, begin, withdraw, dismiss } = useBeginning(frontEnd, id === null, options);
  const thread = useMemo(() => (id === null ? null : begun?.id === id ? begun : frontEnd.open(id)), [frontEnd, id, begun]);
  useThread(thread);
  useReturned(frontEnd, id, options.onReturned);
  const joined = useStore(thread?.state ?? NO_THREAD);
  const state = thread ? joined : beginning;
  const isReady = useStore(frontEnd.isStarted);
  const signedOut = useStore(frontEnd.signedOut);
  const actions = useMemo(
    () => (thread ? actionsOn(thread) : { ...NO_ACTIONS, send: begin, stop: withdraw, dismiss }),
    [thread, begin, withdraw, dismiss],
  );
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
    /** Whether nobody is signed in, or no longer: `problem` says why, and `FrontEnd.start` begins again. */
    isSignedOut: signedOut !== null,
    isLoading: state.loading === "all",
    isRunning: isRunning(state),
    isWaiting: isWaiting(state),
    isStopping: state.stopping,
    hasOlder,
    /** `lost`: the connection is opened again by itself. */
    connection,
    problem: state.problem ?? signedOut,
    ...actions,
  };
}

/** Begins a new conversation with its first message, which is shown until its conversation exists: also one of an earlier visit. */
function useBeginning(frontEnd: FrontEnd, isNew: boolean, { agentId = "", onCreated }: ConversationOptions) {
  const { outbox, isStarted } = frontEnd;
  const [begun, setBegun] = useState<Thread | null>(null);
  const [beginning, setBeginning] = useState<ThreadState>(EMPTY_THREAD);
  const isReady = useStore(isStarted);
  const firstId = useRef<string | null>(null);
  const show = useCallback((entry: OutgoingMessage) => {
    firstId.current = entry.id;
    const files = entry.files.map(shownFile);
    setBeginning(reduce(EMPTY_THREAD, { type: "sending", entryId: entry.id, content: entry.content, files, edited: null }));
  }, []);
  useEffect(() => {
    if (!isNew || !isReady || firstId.current !== null) return;
    for (const { entry } of outbox.items.get())
      if (entry.kind === "message" && entry.conversationId === null && entry.agentId === (agentId || null)) return show(entry);
  }, [outbox, isNew, isReady, agentId, show]);
  useEffect(
    () =>
      outbox.on((event) => {
        if (event.entry.id !== firstId.current) return;
        if (event.type === "waiting") {
          if (event.unreachable) setBeginning((it) => ({ ...it, connection: "lost" }));
          return;
        }
        firstId.current = null;
        setBeginning(event.type === "refused" ? { ...EMPTY_THREAD, problem: problemOf(event.error) } : EMPTY_THREAD);
        if (event.type !== "created") return;
        const opened = frontEnd.open(event.conversation.id);
        opened.begin(event.conversation, event.entry);
        setBegun(opened);
        onCreated?.(opened.id);
      }),
    [frontEnd, outbox, onCreated],
  );
  const begin = useCallback(
    async (content: string, { files, model }: ConversationSendOptions = {}): Promise<boolean> => {
      if (firstId.current !== null || !isStarted.get()) return false;
      const place = { conversationId: null, agentId: agentId || null };
      const entry = outbox.prepare({ kind: "message", ...place, content, files: outgoing(files), ...(model && { model }) });
      show(entry);
      await outbox.add(entry);
      return true;
    },
    [outbox, isStarted, agentId, show],
  );
  /** Takes the first message back while it could not be sent. */
  const withdraw = useCallback(async (): Promise<void> => {
    const item = outbox.items.get().find(({ entry }) => entry.id === firstId.current);
    if (item && canWithdraw(item)) await outbox.withdraw(item.entry.id);
  }, [outbox]);
  const dismiss = useCallback(() => setBeginning((it) => ({ ...it, problem: null })), []);
  return { begun, beginning, begin, withdraw, dismiss };
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
