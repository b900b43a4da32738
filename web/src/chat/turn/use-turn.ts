import {
  ApiError,
  Batches,
  foldAll,
  followTurn,
  requestProblemOf,
  type LiveReply,
  type Problem,
  type ReceiptView,
  type TurnEvent,
  type TurnView,
} from "@threadkeep/client";
import { useEffect, useState } from "react";

import { api } from "../../api/api";
import { atNextFrame } from "@threadkeep/client/browser";
import { replyBefore } from "../../turn/replay";

/** What is known about a turn so far. */
export interface WatchedTurn {
  turn: TurnView;
  /** Null before the first model call. */
  receipt: ReceiptView | null;
  events: readonly TurnEvent[];
  /** The reply that the events build. */
  reply: LiveReply;
  /** Whether more may come. */
  isRunning: boolean;
}

export type Watched = { state: "loading" } | { state: "missing" } | { state: "failed"; problem: Problem } | ({ state: "there" } & WatchedTurn);

/** Reads a turn of a conversation and follows it to its end. */
export function useTurn(conversationId: string, turnId: string): Watched {
  const [watched, setWatched] = useState<Watched>({ state: "loading" });
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    const update = (next: Watched) => !signal.aborted && setWatched(next);
    watch(conversationId, turnId, signal, update).catch((error: unknown) => {
      if (!signal.aborted) update(isMissing(error) ? { state: "missing" } : { state: "failed", problem: requestProblemOf(error) });
    });
    return () => leaving.abort();
  }, [conversationId, turnId]);
  return watched;
}

async function watch(conversationId: string, turnId: string, signal: AbortSignal, update: (next: Watched) => void): Promise<void> {
  let [turn, receipt] = await read(turnId, signal);
  if (turn.conversationId !== conversationId) return update({ state: "missing" });
  let events: readonly TurnEvent[] = [];
  let reply = replyBefore(turn);
  const wasRunning = turn.endedAt === null;
  const show = (isRunning: boolean) => update({ state: "there", turn, receipt, events, reply, isRunning });
  const batches = new Batches<TurnEvent>((more) => {
    events = [...events, ...more];
    reply = foldAll(reply, more);
    if (wasRunning) show(true);
  }, { atNextFrame });
  if (wasRunning) show(true);
  await followTurn(api, turnId, { onEvents: (more) => batches.add(more), onLost: () => {}, onBack: () => {} }, signal);
  batches.flush();
  if (wasRunning) [turn, receipt] = await read(turnId, signal);
  show(false);
}

async function read(turnId: string, signal: AbortSignal): Promise<[TurnView, ReceiptView | null]> {
  return Promise.all([
    api.get<TurnView>(`/api/turns/${turnId}`, {}, signal),
    api.get<ReceiptView>(`/api/turns/${turnId}/context`, {}, signal).catch((error: unknown) => {
      if (isMissing(error)) return null; // it doesn't exist yet
      throw error;
    }),
  ]);
}

/** Whether the turn was not found; a malformed id counts as that, too. */
function isMissing(error: unknown): boolean {
  return error instanceof ApiError && [400, 404, 422].includes(error.status);
}
