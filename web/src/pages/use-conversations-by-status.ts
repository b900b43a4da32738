/** Conversations by status, for the pages that list them: active, archived, or deleted and not yet purged. */

import { requestProblemOf, type ConversationView, type PageView_ConversationView, type Problem } from "@threadkeep/client";
import { useCallback, useEffect, useRef, useState } from "react";

import { api } from "../api/api";
import { frontEnd } from "../state/front-end";

export interface ConversationsByStatus {
  items: readonly ConversationView[];
  state: "loading" | "ready" | "failed";
  problem: Problem | null;
  nextCursor: string | null;
}

const PAGE = 50;
const UNREAD: ConversationsByStatus = { items: [], state: "loading", problem: null, nextCursor: null };

/** Loads a page at a time, and reloads everything shown when a conversation changes. */
export function useConversationsByStatus(status: "active" | "archived" | "deleted") {
  const [list, setList] = useState(UNREAD);
  const reading = useRef<AbortController>(null);
  const read = useCallback(
    async (known: readonly ConversationView[], from: string | null, most: number) => {
      reading.current?.abort();
      const { signal } = (reading.current = new AbortController());
      try {
        const items = [...known];
        let nextCursor = from;
        do {
          const query = { status, cursor: nextCursor, limit: PAGE };
          const page = await api.get<PageView_ConversationView>("/api/conversations", query, signal);
          items.push(...page.items);
          nextCursor = page.nextCursor;
        } while (nextCursor && items.length < most);
        if (!signal.aborted) setList({ items, nextCursor, state: "ready", problem: null });
      } catch (error) {
        if (!signal.aborted) setList((it) => ({ ...it, state: "failed", problem: requestProblemOf(error) }));
      } finally {
        if (!signal.aborted) reading.current = null;
      }
    },
    [status],
  );
  const shown = useRef(0);
  useEffect(() => {
    shown.current = list.items.length;
  }, [list]);
  const again = useCallback(() => read([], null, shown.current), [read]);
  useEffect(() => {
    void again();
    const unfollow = frontEnd.events.on(({ type }) => {
      if (type.startsWith("conversation_")) void again();
    });
    return () => {
      reading.current?.abort();
      unfollow();
    };
  }, [again]);
  /** Called while the end of the list is visible: once is enough. */
  const more = async () => {
    if (!reading.current && list.state === "ready") await read(list.items, list.nextCursor, 0);
  };
  return { list, again, more };
}
