/** `/api/me/events`: what happens to the user's data, in any tab or program. */

import { type ApiClient } from "./api-client";
import { ApiError } from "./errors";
import { RECONNECT_WAITS_MS, waitAfter } from "./pause";
import { readEvents } from "./sse";

export interface UserEvent {
  id: string;
  /** What has happened; `reset`: events may be missing, so all lists must be read again. */
  type: "reset" | `${"conversation" | "turn" | "approval" | "briefing"}_${string}`;
  conversationId?: string;
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
