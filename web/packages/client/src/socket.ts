/** `/ws`: reports when a turn begins or ends in a conversation and when its branch changes, in any tab or program. */

import { type ApiClient } from "./api-client";
import { RECONNECT_WAITS_MS, waitAfter } from "./pause";

export type ConversationChange =
  | { type: "turn"; turnId: string }
  /** Another branch has become the active path; it ends with this message. */
  | { type: "path"; tip: string | null }
  /** The connection was lost for a while, so changes may be missing. */
  | { type: "missed" };

type ChangeListener = (change: ConversationChange) => void;

interface Envelope {
  type: string;
  data?: { messageId?: string | null };
  context?: { sessionId?: string; turnId?: string };
}

/** The change that a socket message reports, if it reports one. */
export function changeIn(text: string): { sessionId: string; change: ConversationChange } | null {
  const sent = JSON.parse(text) as Envelope & { __payload?: string };
  const { type, data, context } = sent.__payload ? (JSON.parse(sent.__payload) as Envelope) : sent;
  const sessionId = context?.sessionId ?? "";
  switch (type) {
    case "conversation_start":
    case "conversation_end":
      return { sessionId, change: { type: "turn", turnId: context?.turnId ?? "" } };
    case "path_changed":
      return { sessionId, change: { type: "path", tip: data?.messageId ?? null } };
    default:
      return null;
  }
}

/** One connection for all conversations that are open. */
export class ConversationSocket {
  #listeners = new Map<string, Set<ChangeListener>>();
  #open: WebSocket | null = null;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(private readonly api: ApiClient) {}

  /** Calls `listener` when something changes in a conversation. */
  subscribe(sessionId: string, listener: ChangeListener): () => void {
    const listeners = this.#listeners.get(sessionId) ?? new Set();
    listeners.add(listener);
    this.#listeners.set(sessionId, listeners);
    if (this.#open?.readyState === WebSocket.OPEN) this.#say("subscribe", sessionId);
    else this.#connect();
    return () => {
      listeners.delete(listener);
      if (listeners.size) return;
      this.#listeners.delete(sessionId);
      if (this.#open?.readyState === WebSocket.OPEN) this.#say("unsubscribe", sessionId);
    };
  }

  #say(type: string, sessionId: string): void {
    this.#open?.send(JSON.stringify({ type, sessionId }));
  }

  #connect(): void {
    if (this.#open || this.#timer) return;
    const url = this.api.url("/ws");
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    this.#open = socket;
    socket.onopen = () => {
      const isBack = this.#failures > 0;
      this.#failures = 0;
      for (const [sessionId, listeners] of this.#listeners) {
        this.#say("subscribe", sessionId);
        if (isBack) for (const listener of listeners) listener({ type: "missed" });
      }
    };
    socket.onmessage = ({ data }) => {
      const found = changeIn(data as string);
      if (found) for (const listener of this.#listeners.get(found.sessionId) ?? []) listener(found.change);
    };
    socket.onclose = () => {
      this.#open = null;
      if (!this.#listeners.size) return;
      this.#timer = setTimeout(() => {
        this.#timer = null;
        this.#connect();
      }, waitAfter(this.#failures++, RECONNECT_WAITS_MS));
    };
  }
}
