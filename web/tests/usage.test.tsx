import { act } from "react";
import { expect, it, vi } from "vitest";

import { type DayUsageView, type TurnView, type UsageView } from "../src/api/schema";
import { TurnDrawer } from "../src/components/turn-drawer";
import { UsagePage } from "../src/components/usage-page";
import { answer, draw, type Drawn } from "./draw";

const json = (value: unknown) => Promise.resolve(new Response(JSON.stringify(value)));
const DAY: DayUsageView = { date: "2026-01-01", agentId: "a", turns: 2, inputTokens: 1500, outputTokens: 30, cacheReadTokens: 0, cacheWriteTokens: 0, estimated: false };
const USAGE: UsageView = { inputTokens: 1500, outputTokens: 30, cacheReadTokens: 0, cacheWriteTokens: 0, estimated: false };

async function settled(drawn: Drawn): Promise<Drawn> {
  await act(async () => {});
  await act(async () => {});
  return drawn;
}

async function usagePage(...items: DayUsageView[]): Promise<string[][]> {
  answer.mockImplementation(() => json({ items }));
  const drawn = await settled(draw(<UsagePage onMenu={() => {}} />));
  return [...drawn.place.querySelectorAll("tr")].map((row) => [...row.children].map((cell) => cell.textContent!.trim()));
}

it("counts turns and tokens by day, with those of the provider's cache", async () => {
  const cached = { ...DAY, date: "2026-01-02", estimated: true, cacheReadTokens: 1200, cacheWriteTokens: 90 };
  expect(await usagePage(DAY, cached)).toEqual([
    ["Day", "Agent", "Turns", "Input tokens", "Cached input tokens", "Tokens written to cache", "Output tokens"],
    ["2026-01-02", "–", "2", "1,500", "1,200", "90", "30 estimated"],
    ["2026-01-01", "–", "2", "1,500", "0", "0", "30"],
    ["Total", "4", "3,000", "1,200", "90", "60"],
  ]);
});

it("does not speak of a cache where there is none", async () => {
  const [head] = await usagePage(DAY);
  expect(head).toEqual(["Day", "Agent", "Turns", "Input tokens", "Output tokens"]);
});

async function facts(usage: UsageView, prefixShare: number | null = null): Promise<string[]> {
  const turn: Partial<TurnView> = { conversationId: "c", status: "COMPLETED", endedAt: "2026-01-01T00:00:01.000Z", startedAt: "2026-01-01T00:00:00.000Z", model: "m", usage };
  const receipt = { components: [], messageIds: [], tools: [], tokenEstimate: 1, droppedMessages: 0, summary: null, prefixShare };
  answer.mockImplementation((url) => {
    if (url.pathname.endsWith("/events")) return Promise.resolve(new Response(null, { status: 204 }));
    return json(url.pathname.endsWith("/context") ? receipt : turn);
  });
  const drawn = await settled(draw(<TurnDrawer conversationId="c" turnId="t" onClose={() => {}} />));
  await vi.waitFor(() => drawn.find(".facts"));
  return [...drawn.place.querySelectorAll(".facts > *")].map((it) => it.textContent!);
}

it("says in a turn's details what came from the provider's cache", async () => {
  const told = await facts({ ...USAGE, cacheReadTokens: 1200, cacheWriteTokens: 90 });
  expect(told.slice(3, 7)).toEqual(["Input tokens1,500", "Output tokens30", "Cached input tokens1,200", "Tokens written to cache90"]);
  expect((await facts(USAGE)).filter((it) => it.includes("cache"))).toEqual([]);
});

it("says how much of the request was the same as the last one", async () => {
  expect(await facts(USAGE, 0.934)).toContain("Unchanged since last request93%");
  expect((await facts(USAGE)).filter((it) => it.startsWith("Same"))).toEqual([]);
});
