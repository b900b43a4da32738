import { type ConversationPatch, type ConversationView } from "@threadkeep/client";
import { useMemo } from "react";

import { useFrontEnd } from "./provider.tsx";
import { useStore } from "./use-store.ts";

/** The user's active conversations, newest activity first; changes made elsewhere appear by themselves. */
export function useConversations() {
  const { conversations } = useFrontEnd();
  const { items, nextCursor, state } = useStore(conversations.state);
  const actions = useMemo(
    () => ({
      /** Reads the next page. */
      readMore: (): Promise<void> => conversations.readMore(),
      /** Renames, pins or archives one. */
      change: (id: string, patch: ConversationPatch): Promise<ConversationView> => conversations.change(id, patch),
      delete: (id: string): Promise<void> => conversations.delete(id),
      /** Takes the deletion of one back. */
      restore: (id: string): Promise<void> => conversations.restore(id),
      refresh: (): Promise<void> => conversations.refresh(),
    }),
    [conversations],
  );
  return { conversations: items, isLoading: state === "loading", isFailed: state === "failed", hasMore: nextCursor !== null, ...actions };
}
