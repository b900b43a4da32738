/** Keeps the user's lists up to date. */

import { type UserEvent } from "@threadkeep/client";

import { followSharedUserEvents } from "../api/shared-user-events";
import { agents } from "./agents";
import { approvals, refreshApprovals } from "./approvals";
import { briefings, refreshBriefings } from "./briefings";
import { dropConversation, forgetConversations, refreshConversations } from "./conversations";

/** Changes within this time are loaded together. */
const TOGETHER_MS = 150;

const listeners = new Set<(event: UserEvent) => void>();

/** Calls `listener` with each of the user's events until the returned function is called. */
export function onUserEvent(listener: (event: UserEvent) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Loads all lists now, changed ones when events arrive, and all again when the user returns to the page. */
export function startUserEvents(userId: string): () => void {
  const closing = new AbortController();
  const { signal } = closing;
  const [readConversations, readApprovals, readBriefings] = [refreshConversations, refreshApprovals, refreshBriefings].map((refresh) =>
    coalesced(refresh, signal),
  ) as [Refresh, Refresh, Refresh];
  const loadAll = () => {
    if (document.hidden) return;
    readConversations();
    readApprovals();
    readBriefings();
  };
  const unfollow = followSharedUserEvents(userId, (event) => {
    for (const listener of listeners) listener(event);
    const [what] = event.type.split("_");
    if (what === "reset") loadAll();
    if (event.type === "conversation_deleted" && event.conversationId) dropConversation(event.conversationId);
    if (what === "briefing") readBriefings();
    if (what === "conversation" || what === "turn") readConversations();
    if (what === "approval" || what === "turn") readApprovals();
  });
  loadAll();
  window.addEventListener("focus", loadAll, { signal });
  document.addEventListener("visibilitychange", loadAll, { signal });
  return () => {
    closing.abort();
    unfollow();
    forgetLists();
  };
}

/** The next user must not see them, not even while theirs load. */
function forgetLists(): void {
  forgetConversations();
  approvals.set([]);
  briefings.set(null);
  agents.set([]);
}

type Refresh = () => void;

/** Loads at once, and once more for all changes shortly after. */
function coalesced(refresh: () => Promise<void>, signal: AbortSignal): Refresh {
  let isPausing = false;
  let again = false;
  const run = () => {
    if (signal.aborted) return;
    again = false;
    isPausing = true;
    void refresh();
    setTimeout(() => {
      isPausing = false;
      if (again) run();
    }, TOGETHER_MS);
  };
  return () => {
    if (isPausing) again = true;
    else run();
  };
}
