/** A turn played again from its events, at its own pace or faster. Pure. */

import { fold, startReply, type LiveReply, type TurnEvent, type TurnView } from "@threadkeep/client";

import { type Span, type Timeline } from "./timeline";

/** A longer wait between two events is played as this long. */
export const MOST_IDLE_MS = 1500;

export interface Replay {
  events: readonly TurnEvent[];
  /** When each event happened, in milliseconds from the turn's start. */
  times: readonly number[];
  /** When each event is played. */
  positions: readonly number[];
  /** How long the replay takes. */
  duration: number;
  /** How much idle time is left out. */
  leftOut: number;
}

export function replayOf(events: readonly TurnEvent[]): Replay {
  const times: number[] = [];
  const positions: number[] = [];
  let time = 0;
  let position = 0;
  events.forEach(({ at }, index) => {
    // Clocks are set back, and nodes have their own.
    const gap = index ? Math.max(0, at - events[index - 1]!.at) : 0;
    times.push((time += gap));
    positions.push((position += Math.min(gap, MOST_IDLE_MS)));
  });
  return { events, times, positions, duration: position, leftOut: time - position };
}

/** A crash is played with what came just before it. */
const BEFORE_CRASH_MS = 1500;

/** Just before the server was first gone; null if it never was. */
export function crashIn({ events, positions }: Replay): number | null {
  const resumed = events.findIndex(({ type }) => type === "turn_resumed");
  return resumed < 1 ? null : Math.max(0, positions[resumed - 1]! - BEFORE_CRASH_MS);
}

/** How many events have been played at a position. */
export function playedAt({ positions }: Replay, position: number): number {
  let [from, to] = [0, positions.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (positions[middle]! <= position) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The turn's own time at a position of its replay. */
export function timeAt({ times, positions }: Replay, position: number): number {
  return between(positions, times, position);
}

/** The position of a turn's time in its replay. */
export function positionOf({ times, positions }: Replay, time: number): number {
  return between(times, positions, time);
}

/** Reads off a line that is drawn through points; `xs` never falls. */
function between(xs: readonly number[], ys: readonly number[], x: number): number {
  const next = xs.findIndex((it) => it > x);
  if (next < 0) return ys.at(-1) ?? 0;
  if (next === 0) return ys[0]!;
  const [left, right] = [xs[next - 1]!, xs[next]!];
  return ys[next - 1]! + ((x - left) / (right - left)) * (ys[next]! - ys[next - 1]!);
}

/** The step at a time: the latest that runs then, or else the latest that has begun; -1 before the first. */
export function stepAt({ spans }: Timeline, time: number): number {
  const begun = (span: Span) => span.from <= time;
  const running = spans.findLastIndex((span) => begun(span) && time < span.to);
  return running < 0 ? spans.findLastIndex(begun) : running;
}

/** Where a replay can halt, in order: its start, where a step begins or ends, its end. */
export function stopsOf(replay: Replay, { spans }: Timeline): number[] {
  const positions = spans.flatMap((span) => [span.from, span.to]).map((time) => positionOf(replay, time));
  return [...new Set([0, ...positions, replay.duration])].sort((a, b) => a - b);
}

/** The stop after a position, or with -1 the one before it. */
export function nextStop(stops: readonly number[], position: number, direction: 1 | -1): number {
  const found = direction > 0 ? stops.find((it) => it > position) : stops.findLast((it) => it < position);
  return found ?? (direction > 0 ? (stops.at(-1) ?? 0) : 0);
}

/** The latest stop that has been reached: where motion is not wanted, a replay goes from stop to stop. */
export function stopAt(stops: readonly number[], position: number): number {
  return stops.findLast((it) => it <= position) ?? 0;
}

/** The reply of a turn before its first event. */
export function replyBefore(turn: TurnView): LiveReply {
  return startReply({
    id: turn.assistantMessageId,
    conversationId: turn.conversationId,
    turnId: turn.id,
    runId: turn.runId,
    role: "assistant",
    seq: 0,
    parentId: turn.userMessageId,
    parts: [],
    status: "PENDING",
    tokenCount: null,
    usage: null,
    model: turn.model,
    archived: false,
    createdAt: turn.startedAt,
    completedAt: null,
  });
}

/** The reply after a number of events; moving forward only costs the events in between. */
export class Rewind {
  #played = 0;
  #reply: LiveReply;

  constructor(
    private readonly start: LiveReply,
    private readonly events: readonly TurnEvent[],
  ) {
    this.#reply = start;
  }

  at(count: number): LiveReply {
    if (count < this.#played) [this.#played, this.#reply] = [0, this.start];
    for (; this.#played < Math.min(count, this.events.length); this.#played++)
      this.#reply = fold(this.#reply, this.events[this.#played]!);
    return this.#reply;
  }
}
