/** Conversations that are not in the list: archived, or deleted and not yet purged. */

import { useCallback, useEffect, useState } from "react";

import { get } from "../api/client";
import { type ConversationView, type PageView_ConversationView } from "../api/schema";
import { type Problem } from "../thread/reduce";
import { whenTold } from "./my-events";
import { pageProblemOf } from "./use-loaded";

export interface PutAway {
  items: readonly ConversationView[];
  state: "loading" | "ready" | "failed";
  problem: Problem | null;
  nextCursor: string | null;
}

const PAGE = 50;

/** Reads a page at a time, and the first again when something happens to a conversation. */
export function usePutAway(status: "archived" | "deleted") {
  const [list, setList] = useState<PutAway>({ items: [], state: "loading", problem: null, nextCursor: null });
  const read = useCallback(
    async (cursor: string | null, signal?: AbortSignal) => {
      try {
        const page = await get<PageView_ConversationView>("/api/conversations", { status, cursor, limit: PAGE }, signal);
        setList(({ items }) => {
          const before = cursor ? items : [];
          return { items: [...before, ...page.items], nextCursor: page.nextCursor, state: "ready", problem: null };
        });
      } catch (error) {
        if (!signal?.aborted) setList((it) => ({ ...it, state: "failed", problem: pageProblemOf(error) }));
      }
    },
    [status],
  );
  useEffect(() => {
    const leaving = new AbortController();
    void read(null, leaving.signal);
    const unfollow = whenTold(({ type }) => {
      if (type.startsWith("conversation_")) void read(null, leaving.signal);
    });
    return () => {
      leaving.abort();
      unfollow();
    };
  }, [read]);
  return { list, again: () => read(null), more: () => read(list.nextCursor) };
}
