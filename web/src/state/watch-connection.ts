/** Notices that the server is away, and when it is back. */

import { Store } from "@threadkeep/client";

import { api, isUnconfirmed } from "../api/api";
import { isReached, returns } from "../api/reachability";
import { refreshAgents } from "./agents";
import { frontEnd, outbox } from "./front-end";
import { refreshModels } from "./models";
import { loadSession } from "./session";

/** Whether the server is away: one lost request is not enough. */
export const isAway = new Store(false);

const LOOK_AFTER_MS = [1500, 2000, 3000, 5000, 10_000, 15_000];

/** Looks for the server while it is away, until the returned function is called. */
export function watchConnection(): () => void {
  const closing = new AbortController();
  const { signal } = closing;
  let isLooking = false;
  let isDoubted = false;
  const isSure = () => isHere() && !isDoubted;
  const look = async () => {
    if (isLooking || isSure()) return;
    isLooking = true;
    if (isUnconfirmed.get()) isAway.set(true);
    for (let attempt = 0; !isSure() && !signal.aborted; attempt++) {
      await api.pause(LOOK_AFTER_MS[Math.min(attempt, LOOK_AFTER_MS.length - 1)]!, signal);
      if (isSure() || signal.aborted) break;
      isDoubted = false;
      await loadSession(); // the user may be another one by then
      if (!isHere()) isAway.set(true);
    }
    isLooking = false;
    if (signal.aborted) return;
    noteReturn();
    if (!isAway.get()) return;
    isAway.set(false);
    refreshAll();
  };
  const unsubscribe = isReached.subscribe(() => void look());
  // The browser's word is not enough, since a server may be on this machine; it is a reason to look, also if
  // something that was asked before still arrives.
  const doubt = () => {
    isDoubted = true;
    isReached.set(false);
    void look();
  };
  window.addEventListener("offline", doubt, { signal });
  void look();
  return () => {
    closing.abort();
    unsubscribe();
    isAway.set(false);
  };
}

/** A server that responds, but doesn't say who the user is, is of no use yet. */
const isHere = () => isReached.get() && !isUnconfirmed.get();

/** Not more often: behind a proxy, one thing may always fail as if the server were away. */
const RETURNS_EVERY_MS = 30_000;
let returnedAt = -Infinity;

function noteReturn(): void {
  const now = performance.now();
  if (!isAway.get() && now - returnedAt < RETURNS_EVERY_MS) return;
  returnedAt = now;
  returns.update((count) => count + 1);
}

function refreshAll(): void {
  frontEnd.events.reset();
  outbox.retry();
  refreshAgents().catch(() => {}); // read again when they are needed
  void refreshModels();
}
