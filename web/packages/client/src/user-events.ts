/** `/api/me/events`: what happens to the user's data, in any tab or program. */

import { type ApiClient } from "./api-client.ts";
import { ApiError } from "./errors.ts";
import { RECONNECT_WAITS_MS, waitAfter } from "./pause.ts";
import { readEvents } from "./sse.ts";

export interface UserEvent {
  id: string;
  /** What has happened; `reset`: events may be missing, so all lists must be read again. */
  type: "reset" | `${"conversation" | "turn" | "approval" | "briefing"}_${string}`;
  conversationId?: string;
  turnId?: string;
}

export type UserEventListener = (event: UserEvent) => void;

/** Calls `listener` with each event until the signal is aborted or the server no longer accepts the token. */
export async function followUserEvents(api: ApiClient, listener: UserEventListener, signal: AbortSignal): Promise<void> {
  let lastId: string | null = null;
  let failures = 0;
  while (!signal.aborted) {
    try {
      await readEvents<UserEvent>(api, "/api/me/events", lastId, signal, (events) => {
        failures = 0;
        lastId = events.at(-1)?.id ?? lastId;
        events.forEach(listener);
        return false;
      });
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return;
    }
    if (signal.aborted) return;
    await api.pause(waitAfter(failures++, RECONNECT_WAITS_MS), signal);
  }
}

/** How one reader's events reach all: a browser's tabs share a stream. */
export type FollowUserEvents = (api: ApiClient, userId: string, listener: UserEventListener, signal: AbortSignal) => void;

/** The events of the user who is signed in, for all who listen. */
export class UserEvents {
  #listeners = new Set<UserEventListener>();
  #closing = new AbortController();

  constructor(
    private readonly api: ApiClient,
    private readonly follow: FollowUserEvents = (api, _, listener, signal) => void followUserEvents(api, listener, signal),
  ) {}

  start(userId: string): void {
    this.stop();
    this.#closing = new AbortController();
    this.follow(this.api, userId, (event) => this.#tell(event), this.#closing.signal);
  }

  stop(): void {
    this.#closing.abort();
  }

  /** Has everything read again, as after a time without a connection. */
  reset(): void {
    this.#tell({ id: "", type: "reset" });
  }

  /** Calls `listener` with each event until the returned function is called. */
  on(listener: UserEventListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(event: UserEvent): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
}
