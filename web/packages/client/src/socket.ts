/** `/ws`: reports turns that begin or end in a conversation, and changes of its branch, from any tab or program. */

import { address } from "./api-client";

const WAITS_MS = [500, 1000, 3000, 10_000, 30_000];

export type News =
  | { type: "turn"; turnId: string }
  /** Another branch has become the active path; it ends with this message. */
  | { type: "moved"; tip: string | null }
  /** The connection was interrupted for a while. */
  | { type: "missed" };

type NewsListener = (news: News) => void;

interface Envelope {
  type: string;
  data?: { messageId?: string | null };
  context?: { sessionId?: string; turnId?: string };
}

/** The conversation event in a socket message, if it concerns the page. */
export function newsOf(text: string): { sessionId: string; news: News } | null {
  const sent = JSON.parse(text) as Envelope & { __payload?: string };
  const { type, data, context } = sent.__payload ? (JSON.parse(sent.__payload) as Envelope) : sent;
  const sessionId = context?.sessionId ?? "";
  switch (type) {
    case "conversation_start":
    case "conversation_end":
      return { sessionId, news: { type: "turn", turnId: context?.turnId ?? "" } };
    case "path_changed":
      return { sessionId, news: { type: "moved", tip: data?.messageId ?? null } };
    default:
      return null;
  }
}

class Socket {
  #listeners = new Map<string, Set<NewsListener>>();
  #open: WebSocket | null = null;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** Calls `listener` with what happens in a conversation. */
  subscribe(sessionId: string, listener: NewsListener): () => void {
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
    const url = address("/ws");
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    this.#open = socket;
    socket.onopen = () => {
      const again = this.#failures > 0;
      this.#failures = 0;
      for (const [sessionId, listeners] of this.#listeners) {
        this.#say("subscribe", sessionId);
        if (again) for (const listener of listeners) listener({ type: "missed" });
      }
    };
    socket.onmessage = (message) => {
      const found = newsOf(message.data as string);
      if (found) for (const listener of this.#listeners.get(found.sessionId) ?? []) listener(found.news);
    };
    socket.onclose = () => {
      this.#open = null;
      if (!this.#listeners.size) return;
      const wait = WAITS_MS[Math.min(this.#failures++, WAITS_MS.length - 1)];
      this.#timer = setTimeout(() => {
        this.#timer = null;
        this.#connect();
      }, wait);
    };
  }
}

export const socket = new Socket();
