/** The user's active conversations, newest activity first, as far as the list has been scrolled, and all pinned ones. */

import { Store, type ConversationPatch, type ConversationView, type PageView_ConversationView } from "@threadkeep/client";

import { api } from "../api/api";
import { loadUnknownAgents } from "./agents";

const PAGE = 40;
const MOST_PINNED = 100;

export interface ConversationList {
  items: readonly ConversationView[];
  nextCursor: string | null;
  state: "loading" | "ready" | "failed";
}

const UNREAD: ConversationList = { items: [], nextCursor: null, state: "loading" };

export const conversations = new Store<ConversationList>(UNREAD);

/** Counts reads: a response older than the shown one is too late. */
const readings = { asked: 0, shown: 0 };
/** Counts the user's changes here: a response to an earlier request doesn't include them. */
let changes = 0;

/** Empties the list when the user signs out. */
export function forgetConversations(): void {
  readings.shown = ++readings.asked;
  conversations.set(UNREAD);
}

type Query = { cursor?: string | null; limit?: number; pinned?: boolean };

async function page(query: Query): Promise<PageView_ConversationView> {
  return api.get<PageView_ConversationView>("/api/conversations", { limit: PAGE, status: "active", ...query });
}

/** Reloads the first page and the pinned ones; older loaded ones stay. */
export async function refreshConversations(): Promise<void> {
  const reading = ++readings.asked;
  const before = changes;
  try {
    const [first, pinned] = await Promise.all([page({}), page({ pinned: true, limit: MOST_PINNED })]);
    if (reading < readings.shown) return;
    if (before !== changes) return refreshConversations();
    readings.shown = reading;
    conversations.update((list) => {
      const fresh = new Set(first.items.map((it) => it.id));
      const oldest = (first.nextCursor && first.items.at(-1)?.updatedAt) ?? ""; // without a next page nothing is below
      const below = list.items.filter((it) => !fresh.has(it.id) && !it.pinned && it.updatedAt < oldest);
      const nextCursor = below.length ? list.nextCursor : first.nextCursor;
      const items = [...first.items, ...pinned.items.filter((it) => !fresh.has(it.id)), ...below];
      return { items, nextCursor, state: "ready" };
    });
    loadUnknownAgents(first.items.map((it) => it.agentId));
  } catch {
    if (reading < readings.shown) return;
    conversations.update((list) => ({ ...list, state: list.items.length ? "ready" : "failed" }));
  }
}

/** Shows in the list at once that a turn has ended. */
export function markTurnEnded(turnId: string): void {
  conversations.update((list) => {
    if (!list.items.some((it) => it.activeTurnId === turnId)) return list;
    return { ...list, items: list.items.map((it) => (it.activeTurnId === turnId ? { ...it, activeTurnId: null } : it)) };
  });
}

export async function readMoreConversations(): Promise<void> {
  const { nextCursor, state } = conversations.get();
  if (!nextCursor || state !== "ready") return;
  conversations.update((list) => ({ ...list, state: "loading" }));
  try {
    const more = await page({ cursor: nextCursor });
    conversations.update((list) => {
      if (list.nextCursor !== nextCursor) return list; // it was read again meanwhile, from its start
      const known = new Set(list.items.map((it) => it.id));
      const items = [...list.items, ...more.items.filter((it) => !known.has(it.id))];
      return { items, nextCursor: more.nextCursor, state: "ready" };
    });
  } catch {
    conversations.update((list) => (list.nextCursor === nextCursor ? { ...list, state: "failed" } : list));
  }
}

/** Changes one and updates the list immediately, or removes it if it is archived. */
export async function changeConversation(id: string, patch: ConversationPatch): Promise<ConversationView> {
  const changed = await api.send<ConversationView>("PATCH", `/api/conversations/${id}`, patch);
  changes++;
  if (patch.status === "active") await refreshConversations();
  conversations.update((list) => ({
    ...list,
    items: list.items.map((it) => (it.id === id ? changed : it)).filter((it) => it.status === "active"),
  }));
  return changed;
}

export async function deleteConversation(id: string): Promise<void> {
  await api.send("DELETE", `/api/conversations/${id}`);
  dropConversation(id);
}

/** Removes one that was deleted, here or elsewhere. */
export function dropConversation(id: string): void {
  changes++;
  conversations.update((list) => {
    const items = list.items.filter((it) => it.id !== id);
    return items.length === list.items.length ? list : { ...list, items };
  });
}

export async function restoreConversation(id: string): Promise<void> {
  await api.send("POST", `/api/conversations/${id}/restore`);
  await refreshConversations();
}
