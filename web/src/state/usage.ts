/** Usage, summed by day and by agent. */

import { type DayUsageView } from "@threadkeep/client";

export interface Sum {
  turns: number;
  inputTokens: number;
  outputTokens: number;
  /** Part of the input. */
  cacheReadTokens: number;
  estimated: boolean;
}

const DAYS = 30;
const DAY_MS = 86_400_000;
const dateOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** The last 30 days (UTC, as the server counts them), oldest first, and those before or after that it knows of. */
export function daysOf(items: readonly DayUsageView[], now: number): string[] {
  const known = items.map((it) => Date.parse(it.date));
  const last = Math.max(Date.parse(dateOf(now)), ...known);
  const first = Math.min(Date.parse(dateOf(now)) - (DAYS - 1) * DAY_MS, ...known);
  return Array.from({ length: (last - first) / DAY_MS + 1 }, (_, index) => dateOf(first + index * DAY_MS));
}

export function sumOf(items: readonly DayUsageView[]): Sum {
  const add = (count: (it: DayUsageView) => number | undefined) => items.reduce((total, it) => total + (count(it) ?? 0), 0);
  return {
    turns: add((it) => it.turns),
    inputTokens: add((it) => it.inputTokens),
    outputTokens: add((it) => it.outputTokens),
    cacheReadTokens: add((it) => it.cacheReadTokens), // an older server does not count them
    estimated: items.some((it) => it.estimated),
  };
}

/** Usage of each agent, most tokens first. */
export function agentSums(items: readonly DayUsageView[]): { agentId: string; sum: Sum }[] {
  const ids = [...new Set(items.map((it) => it.agentId))];
  const tokens = ({ inputTokens, outputTokens }: Sum) => inputTokens + outputTokens;
  return ids
    .map((agentId) => ({ agentId, sum: sumOf(items.filter((it) => it.agentId === agentId)) }))
    .sort((one, other) => tokens(other.sum) - tokens(one.sum));
}

/** The share of the input that came from the provider's cache; null if none did. */
export function cachedShare({ inputTokens, cacheReadTokens }: Sum): number | null {
  return inputTokens && cacheReadTokens ? cacheReadTokens / inputTokens : null;
}
