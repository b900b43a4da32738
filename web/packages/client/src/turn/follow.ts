/** Follows a turn to its end, whatever the network does: each event once, in order. */

import { type ApiClient } from "../api-client.ts";
import { ApiError } from "../errors.ts";
import { waitAfter } from "../pause.ts";
import { readEvents } from "../sse.ts";
import { isTerminal, type TurnEvent } from "./events.ts";

const WAITS_MS = [300, 700, 1500, 3000, 5000];

export interface TurnFollower extends ConnectionListener {
  onEvents(events: TurnEvent[]): void;
}

export interface ConnectionListener {
  /** The connection is lost; it is opened again, and the stream goes on where it broke off. */
  onLost?(): void;
  onBack?(): void;
}

/** Passes on the events after `after`. Returns when the turn has ended; `expired` if its events were deleted and the
message must be loaded. */
export async function followTurn(
  api: ApiClient,
  turnId: string,
  follower: TurnFollower,
  signal: AbortSignal,
  after = 0,
): Promise<"ended" | "expired"> {
  let lastSeq = after;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const lastId = lastSeq ? String(lastSeq) : null;
      const ended = await readEvents<TurnEvent>(api, `/api/turns/${turnId}/events`, lastId, signal, (events) => {
        const fresh = events.filter((event) => event.seq > lastSeq);
        if (failures) follower.onBack?.();
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
    follower.onLost?.();
    await api.pause(waitAfter(failures, WAITS_MS), signal);
    failures += 1;
  }
  return "ended";
}

export interface FollowOptions extends ConnectionListener {
  /** The number of the last event that is known. */
  after?: number;
  signal?: AbortSignal;
}

/** The events of a turn one by one, as they arrive. Leaving the loop stops following; the turn goes on. */
export async function* turnEvents(
  api: ApiClient,
  turnId: string,
  { after = 0, signal, ...listener }: FollowOptions = {},
): AsyncGenerator<TurnEvent, undefined> {
  const leaving = new AbortController();
  const stop = signal ? AbortSignal.any([signal, leaving.signal]) : leaving.signal;
  const arrived: TurnEvent[] = [];
  let wake = () => {};
  let isOver = false;
  const onEvents = (events: TurnEvent[]) => {
    arrived.push(...events);
    wake();
  };
  const following = followTurn(api, turnId, { ...listener, onEvents }, stop, after).finally(() => {
    isOver = true;
    wake();
  });
  following.catch(() => {}); // thrown below, to the reader
  try {
    for (;;) {
      const next = arrived.shift();
      if (next) yield next;
      else if (isOver) break;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
    await following;
  } finally {
    leaving.abort();
  }
}
