/** The model calls of a turn, each with its cost. Pure. */

import { type EventUsage, type TurnEvent } from "@threadkeep/client";

import { isOfProgram } from "./timeline";

export interface ModelCall {
  /** From 1. */
  iteration: number;
  /** How long it took, according to the log. */
  ms: number | null;
  /** Missing if it was cut off, or the log was deleted. */
  usage: EventUsage | null;
  /** The model that answered, if the log knows. */
  model: string | null;
}

/** The models whose calls have no cost, as nobody knows their price; of a log that doesn't say, `otherwise`. */
export function unpricedModels(calls: readonly ModelCall[], otherwise: string | null): string[] {
  const used = calls.filter((it) => it.usage);
  const models = used.length ? used.filter((it) => !it.usage?.cost).map((it) => it.model ?? otherwise) : [otherwise];
  return [...new Set(models.filter((it) => it !== null))];
}

export function modelCallsOf(events: readonly TurnEvent[]): ModelCall[] {
  const calls: ModelCall[] = [];
  // Whoever speaks in a program's turn begins an iteration: its model calls are where usage is reported.
  const isProgram = isOfProgram(events);
  let from = 0;
  for (const event of events) {
    if (isProgram) {
      if (event.type === "iteration_start") from = event.at;
      if (event.type === "usage" && !event.replayed)
        calls.push({ iteration: calls.length + 1, ms: Math.max(0, event.at - from), usage: event, model: event.model ?? null });
      continue;
    }
    if (event.type === "iteration_start" || event.type === "iteration_restart") {
      calls.push({ iteration: event.iteration, ms: null, usage: null, model: null });
      from = event.at;
    }
    const call = calls.at(-1);
    // A log that was made from the message has one sum for all calls.
    if (event.type === "usage" && call && !event.replayed) {
      call.usage = event;
      call.model = event.model ?? null;
      call.ms = Math.max(0, event.at - from);
    }
  }
  return calls;
}
