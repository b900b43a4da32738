/** Follows a turn to its end, whatever the network does: each event once, in order. */

import { ApiError, Unreachable, ask } from "../api/client";
import { EventParser } from "../api/sse";
import { isTerminal, type TurnEvent } from "./events";

/** The server says something every 15 s at least; a connection that is silent for longer is dead. */
const LONGEST_SILENCE_MS = 40_000;
const WAITS_MS = [300, 700, 1500, 3000, 5000];

export interface Follower {
  onEvents(events: TurnEvent[]): void;
  /** The connection is lost; it reconnects. */
  onLost(): void;
  onBack(): void;
}

/** Returns when the turn has ended; `expired` when its events are gone and the message must be read. */
export async function follow(turnId: string, follower: Follower, signal: AbortSignal): Promise<"ended" | "expired"> {
  let after = 0;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const ended = await read(turnId, after, signal, (events) => {
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

async function read(
  turnId: string,
  after: number,
  signal: AbortSignal,
  take: (events: TurnEvent[]) => boolean,
): Promise<boolean> {
  const silence = new AbortController();
  const stop = AbortSignal.any([signal, silence.signal]);
  let timer = setTimeout(() => silence.abort(), LONGEST_SILENCE_MS);
  try {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (after) headers["Last-Event-ID"] = String(after);
    const answer = await ask(`/api/turns/${turnId}/events`, { headers, signal: stop });
    if (answer.status === 204) return true;
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    take([]); // the connection stands
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), LONGEST_SILENCE_MS);
      const events = parser.push(value).map((data) => JSON.parse(data) as TurnEvent);
      if (take(events)) return true;
    }
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new Unreachable(String(error));
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

/** Waits; shorter when the browser says that the network is back. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      window.removeEventListener("online", wake);
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    window.addEventListener("online", wake);
    signal?.addEventListener("abort", wake);
  });
}
