/** `/api/me/events`: what happens to the user's data, in any tab or program. One tab reads it for all. */

import { ApiError } from "../../packages/client/src/api-client";
import { pause, readEvents } from "../../packages/client/src/sse";

const WAITS_MS = [500, 1000, 3000, 10_000, 30_000];

export interface UserEvent {
  id: string;
  /** What has happened; `reset`: events may be missing, so all lists are to be read again. */
  type: "reset" | `${"conversation" | "turn" | "approval" | "briefing"}_${string}`;
  conversationId?: string;
}

type UserEventListener = (event: UserEvent) => void;

/** Calls `listener` with what happens until the returned function is called. */
export function followMyEvents(userId: string, listener: UserEventListener): () => void {
  const closing = new AbortController();
  // Every address has its own server, and every tab may have signed in as somebody else.
  const name = `threadkeep.events.${new URL(document.baseURI).pathname}.${userId}`;
  const channel = new BroadcastChannel(name);
  channel.onmessage = (message: MessageEvent<UserEvent>) => listener(message.data);
  const read = () =>
    readAll(closing.signal, (event) => {
      channel.postMessage(event);
      listener(event);
    });
  // A browser opens six connections to a server: one tab has the stream, and the next when that is closed.
  // Without TLS there are no locks, and each tab reads for itself.
  const locks = navigator.locks as LockManager | undefined;
  if (locks) locks.request(name, { signal: closing.signal }, read).catch(() => {});
  else void read();
  return () => {
    closing.abort();
    channel.close();
  };
}

async function readAll(signal: AbortSignal, listener: UserEventListener): Promise<void> {
  let after: string | null = null;
  let failures = 0;
  while (!signal.aborted) {
    try {
      await readEvents<UserEvent>("/api/me/events", after, signal, (events) => {
        failures = 0;
        after = events.at(-1)?.id ?? after;
        events.forEach(listener);
        return false;
      });
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return; // the page asks for a sign-in
    }
    if (signal.aborted) return;
    await pause(WAITS_MS[Math.min(failures++, WAITS_MS.length - 1)] ?? 500, signal);
  }
}
