/** Usage, summed by day, agent, model and API key. */

import { addCosts, type CostView, type UsageSumView } from "@threadkeep/client";

export interface Sum {
  turns: number;
  inputTokens: number;
  outputTokens: number;
  /** Part of the input. */
  cacheReadTokens: number;
  estimated: boolean;
  /** Of the calls whose price is known; null if none is. */
  cost: CostView | null;
  unpricedCalls: number;
}

const DAYS = 30;
const DAY_MS = 86_400_000;
const dateOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** The last 30 days, oldest first, and those before or after that the server knows of: its time zone may differ. */
export function daysOf(items: readonly UsageSumView[], now: number): string[] {
  const known = items.flatMap((it) => (it.date ? [Date.parse(it.date)] : []));
  const last = Math.max(Date.parse(dateOf(now)), ...known);
  const first = Math.min(Date.parse(dateOf(now)) - (DAYS - 1) * DAY_MS, ...known);
  return Array.from({ length: (last - first) / DAY_MS + 1 }, (_, index) => dateOf(first + index * DAY_MS));
}

export function sumOf(items: readonly UsageSumView[]): Sum {
  const add = (count: (it: UsageSumView) => number | undefined) => items.reduce((total, it) => total + (count(it) ?? 0), 0);
  return {
    turns: add((it) => it.turns),
    inputTokens: add((it) => it.inputTokens),
    outputTokens: add((it) => it.outputTokens),
    cacheReadTokens: add((it) => it.cacheReadTokens), // an older server does not count them
    estimated: items.some((it) => it.estimated),
    cost: items.reduce<CostView | null>((total, { cost }) => (total && cost ? (addCosts(total, cost) ?? total) : (cost ?? total)), null),
    unpricedCalls: add((it) => it.unpricedCalls),
  };
}

/** Whether anything was paid: what is free, such as the Guide, costs nothing that could be shown. */
export function hasCost(cost: CostView | null): cost is CostView {
  return cost !== null && Number(cost.amount) > 0;
}

/** What usage is summed up by; each value is what a server calls it. */
export type Dimension = "agentId" | "model" | "keyId";

/** Usage of each agent, model or API key, most tokens first. */
export function sumsBy(items: readonly UsageSumView[], dimension: Dimension): { value: string | null; sum: Sum }[] {
  const values = [...new Set(items.map((it) => it[dimension] ?? null))];
  const tokens = ({ inputTokens, outputTokens }: Sum) => inputTokens + outputTokens;
  return values
    .map((value) => ({ value, sum: sumOf(items.filter((it) => (it[dimension] ?? null) === value)) }))
    .sort((one, other) => tokens(other.sum) - tokens(one.sum));
}

/** The share of the input that came from the provider's cache; null if none did. */
export function cachedShare({ inputTokens, cacheReadTokens }: Sum): number | null {
  return inputTokens && cacheReadTokens ? cacheReadTokens / inputTokens : null;
}
