/** Follows a turn to its end, whatever the network does: each event once, in order. */

import { ApiError } from "../api-client";
import { pause, readEvents } from "../sse";
import { isTerminal, type TurnEvent } from "./events";

const WAITS_MS = [300, 700, 1500, 3000, 5000];

export interface Follower {
  onEvents(events: TurnEvent[]): void;
  /** The connection is lost; it reconnects. */
  onLost(): void;
  onBack(): void;
}

/** Returns when the turn has ended; `expired` if its events were deleted and the message must be loaded. */
export async function follow(turnId: string, follower: Follower, signal: AbortSignal): Promise<"ended" | "expired"> {
  let after = 0;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const seen = after ? String(after) : null;
      const ended = await readEvents<TurnEvent>(`/api/turns/${turnId}/events`, seen, signal, (events) => {
        const fresh = events.filter((event) => event.seq > after);
        if (failures) follower.onBack();
        failures = 0;
        after = fresh.at(-1)?.seq ?? after;
        if (fresh.length) follower.onEvents(fresh);
        return fresh.some(isTerminal);
      });
      if (ended) return "ended";
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof ApiError && error.code === "EVENTS_EXPIRED") return "expired";
      if (error instanceof ApiError && error.status < 500) throw error;
    }
    if (signal.aborted) break;
    follower.onLost();
    await pause(WAITS_MS[Math.min(failures, WAITS_MS.length - 1)] ?? 5000, signal);
    failures += 1;
  }
  return "ended";
}
