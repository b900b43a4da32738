/** What a search found, one entry for each conversation. */

import { type ConversationView, type SearchHitView } from "@threadkeep/client";

export interface Found {
  conversationId: string;
  title: string | null;
  /** Messages with the words, newest first; none where only the title has them. */
  hits: readonly SearchHitView[];
}

/** Conversations with a matching title first, then those with matching messages, in the order of the server. */
export function grouped(query: string, known: readonly ConversationView[], hits: readonly SearchHitView[]): Found[] {
  const wanted = query.toLowerCase();
  const found = new Map<string, Found>();
  const add = (conversationId: string, title: string | null) => {
    if (!found.has(conversationId)) found.set(conversationId, { conversationId, title, hits: [] });
    return found.get(conversationId)!;
  };
  for (const { id, title } of known) if (title?.toLowerCase().includes(wanted)) add(id, title);
  for (const hit of hits) if (hit.messageId === null) add(hit.conversationId, hit.title);
  for (const hit of hits) {
    const entry = add(hit.conversationId, hit.title);
    if (hit.messageId !== null) found.set(hit.conversationId, { ...entry, hits: [...entry.hits, hit] });
  }
  return [...found.values()];
}
