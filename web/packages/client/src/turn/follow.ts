/** Follows a turn to its end, whatever the network does: each event once, in order. */

import { type ApiClient } from "../api-client";
import { ApiError } from "../errors";
import { waitAfter } from "../pause";
import { readEvents } from "../sse";
import { isTerminal, type TurnEvent } from "./events";

const WAITS_MS = [300, 700, 1500, 3000, 5000];

export interface TurnFollower {
  onEvents(events: TurnEvent[]): void;
  /** The connection is lost; `followTurn` reconnects. */
  onLost(): void;
  onBack(): void;
}

/** Returns when the turn has ended; `expired` if its events were deleted and the message must be loaded. */
export async function followTurn(
  api: ApiClient,
  turnId: string,
  follower: TurnFollower,
  signal: AbortSignal,
): Promise<"ended" | "expired"> {
  let lastSeq = 0;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const lastId = lastSeq ? String(lastSeq) : null;
      const ended = await readEvents<TurnEvent>(api, `/api/turns/${turnId}/events`, lastId, signal, (events) => {
        const fresh = events.filter((event) => event.seq > lastSeq);
        if (failures) follower.onBack();
        failures = 0;
        lastSeq = fresh.at(-1)?.seq ?? lastSeq;
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
    await api.pause(waitAfter(failures, WAITS_MS), signal);
    failures += 1;
  }
  return "ended";
}
