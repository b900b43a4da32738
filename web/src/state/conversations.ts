/** The list of one's conversations, newest activity first, as far as it has been scrolled. */

import { get, send } from "../api/client";
import { type ConversationView, type PageView_ConversationView } from "../api/schema";
import { Store } from "./store";

const PAGE = 40;

export interface ConversationList {
  items: readonly ConversationView[];
  nextCursor: string | null;
  status: "active" | "archived";
  state: "loading" | "ready" | "failed";
}

const START: ConversationList = { items: [], nextCursor: null, status: "active", state: "loading" };

export const conversations = new Store<ConversationList>(START);

async function page(cursor: string | null): Promise<PageView_ConversationView> {
  const { status } = conversations.get();
  return get<PageView_ConversationView>("/api/conversations", { limit: PAGE, cursor, status });
}

/** Reads the first page again; what was scrolled to below it stays. */
export async function refreshConversations(): Promise<void> {
  const { status } = conversations.get();
  try {
    const first = await page(null);
    conversations.update((list) => {
      if (list.status !== status) return list;
      const fresh = new Set(first.items.map((it) => it.id));
      const oldest = first.items.at(-1)?.updatedAt ?? "";
      const below = list.items.filter((it) => !fresh.has(it.id) && it.updatedAt < oldest);
      const nextCursor = below.length ? list.nextCursor : first.nextCursor;
      return { ...list, items: [...first.items, ...below], nextCursor, state: "ready" };
    });
  } catch {
    conversations.update((list) => ({ ...list, state: list.items.length ? "ready" : "failed" }));
  }
}

/** A turn has ended: the list says so now, not when it is read again. */
export function settleTurn(turnId: string): void {
  conversations.update((list) => {
    if (!list.items.some((it) => it.activeTurnId === turnId)) return list;
    return { ...list, items: list.items.map((it) => (it.activeTurnId === turnId ? { ...it, activeTurnId: null } : it)) };
  });
}

export async function readMoreConversations(): Promise<void> {
  const { nextCursor, state } = conversations.get();
  if (!nextCursor || state === "loading") return;
  conversations.update((list) => ({ ...list, state: "loading" }));
  try {
    const more = await page(nextCursor);
    conversations.update((list) => {
      const known = new Set(list.items.map((it) => it.id));
      const items = [...list.items, ...more.items.filter((it) => !known.has(it.id))];
      return { ...list, items, nextCursor: more.nextCursor, state: "ready" };
    });
  } catch {
    conversations.update((list) => ({ ...list, state: "failed" }));
  }
}

export function showConversations(status: "active" | "archived"): void {
  conversations.set({ ...START, status });
  void refreshConversations();
}

export async function deleteConversation(id: string): Promise<void> {
  await send("DELETE", `/api/conversations/${id}`);
  conversations.update((list) => ({ ...list, items: list.items.filter((it) => it.id !== id) }));
}

export async function restoreConversation(id: string): Promise<void> {
  await send("POST", `/api/conversations/${id}/restore`);
  await refreshConversations();
}
