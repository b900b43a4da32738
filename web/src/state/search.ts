/** What to search for, and what was found: one entry for each conversation. */

import { type ConversationView, type SearchHitView } from "@threadkeep/client";

export type Period = "any" | "today" | "week" | "month" | "days";

export interface SearchFilters {
  agentId: string | null;
  period: Period;
  /** The first and the last day, such as `2026-03-10`, where the period is `days`; either may be empty. */
  from: string;
  to: string;
}

export const NO_FILTERS: SearchFilters = { agentId: null, period: "any", from: "", to: "" };

export function hasFilters({ agentId, period }: SearchFilters): boolean {
  return agentId !== null || period !== "any";
}

const DAYS_BACK = { today: 0, week: 6, month: 29 };

/** From when, and until before when, by the reader's own calendar. */
function limitsOf({ period, from, to }: SearchFilters, now: Date): { from?: Date; to?: Date } {
  if (period === "any") return {};
  if (period === "days") return { ...(from && { from: midnight(from) }), ...(to && { to: midnight(to, 1) }) };
  return { from: new Date(now.getFullYear(), now.getMonth(), now.getDate() - DAYS_BACK[period]) };
}

function midnight(day: string, later = 0): Date {
  const [year, month, date] = day.split("-").map(Number);
  return new Date(year!, month! - 1, date! + later);
}

/** The filters as the server takes them. */
export function searchParams(filters: SearchFilters, now = new Date()): Record<string, string> {
  const { from, to } = limitsOf(filters, now);
  return {
    ...(filters.agentId !== null && { agentId: filters.agentId }),
    ...(from && { from: from.toISOString() }),
    ...(to && { to: to.toISOString() }),
  };
}

/** The conversations that the filters let through, by their last change. */
export function filtered(known: readonly ConversationView[], filters: SearchFilters, now = new Date()): readonly ConversationView[] {
  const { from, to } = limitsOf(filters, now);
  const lets = ({ agentId, updatedAt }: ConversationView) =>
    (filters.agentId === null || agentId === filters.agentId) &&
    (!from || Date.parse(updatedAt) >= from.getTime()) &&
    (!to || Date.parse(updatedAt) < to.getTime());
  return known.filter(lets);
}

export interface Found {
  conversationId: string;
  agentId: string;
  title: string | null;
  /** When it changed last, or when its first hit was written. */
  at: string;
  /** Messages with the words, newest first; none where only the title has them. */
  hits: readonly SearchHitView[];
}

/** Conversations with a matching title first, then those with matching messages, in the order of the server. */
export function grouped(query: string, known: readonly ConversationView[], hits: readonly SearchHitView[]): Found[] {
  const wanted = query.toLowerCase();
  const found = new Map<string, Found>();
  const add = (conversationId: string, rest: Omit<Found, "conversationId" | "hits">) => {
    if (!found.has(conversationId)) found.set(conversationId, { conversationId, ...rest, hits: [] });
    return found.get(conversationId)!;
  };
  const addHit = ({ conversationId, agentId, title, createdAt: at }: SearchHitView) => add(conversationId, { agentId, title, at });
  for (const { id, agentId, title, updatedAt: at } of known)
    if (title?.toLowerCase().includes(wanted)) add(id, { agentId, title, at });
  for (const hit of hits) if (hit.messageId === null) addHit(hit);
  for (const hit of hits) {
    const entry = addHit(hit);
    if (hit.messageId !== null) found.set(hit.conversationId, { ...entry, hits: [...entry.hits, hit] });
  }
  return [...found.values()];
}
