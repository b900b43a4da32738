/** `/ws`: tells that a turn began or ended in a conversation, whoever started it. */

import { address } from "./client";

const WAITS_MS = [500, 1000, 3000, 10_000, 30_000];

type Told = (turnId: string | null) => void;

interface Wrapped {
  __payload?: string;
}

interface Envelope {
  type: string;
  context?: { sessionId?: string; turnId?: string };
}

/** The turn of an envelope that begins or ends one. */
export function turnOf(data: string): { sessionId: string; turnId: string } | null {
  const { __payload: payload } = JSON.parse(data) as Wrapped;
  if (!payload) return null;
  const { type, context } = JSON.parse(payload) as Envelope;
  if (type !== "conversation_start" && type !== "conversation_end") return null;
  return { sessionId: context?.sessionId ?? "", turnId: context?.turnId ?? "" };
}

class Socket {
  #told = new Map<string, Set<Told>>();
  #open: WebSocket | null = null;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** Calls `told` at every turn's start and end, and with null when some may have been missed. */
  subscribe(sessionId: string, told: Told): () => void {
    const readers = this.#told.get(sessionId) ?? new Set();
    readers.add(told);
    this.#told.set(sessionId, readers);
    if (this.#open?.readyState === WebSocket.OPEN) this.#say("subscribe", sessionId);
    else this.#connect();
    return () => {
      readers.delete(told);
      if (readers.size) return;
      this.#told.delete(sessionId);
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
      for (const [sessionId, readers] of this.#told) {
        this.#say("subscribe", sessionId);
        if (again) for (const told of readers) told(null);
      }
    };
    socket.onmessage = (message) => {
      const turn = turnOf(message.data as string);
      if (turn) for (const told of this.#told.get(turn.sessionId) ?? []) told(turn.turnId);
    };
    socket.onclose = () => {
      this.#open = null;
      if (!this.#told.size) return;
      const wait = WAITS_MS[Math.min(this.#failures++, WAITS_MS.length - 1)];
      this.#timer = setTimeout(() => {
        this.#timer = null;
        this.#connect();
      }, wait);
    };
  }
}

export const socket = new Socket();
