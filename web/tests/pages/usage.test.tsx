import { type AgentView, type CostView, type EventUsage, type MeView, type TurnView, type UsageSumView, type UsageView } from "@threadkeep/client";
import { act } from "react";
import { expect, it, vi } from "vitest";

import { TurnDrawer } from "../../src/chat/turn/turn-drawer";
import { UsagePage } from "../../src/pages/usage-page";
import { agents as knownAgents } from "../../src/state/agents";
import { daysOf } from "../../src/state/usage";
import { unpricedModels } from "../../src/turn/model-calls";
import { respond, draw, type Drawn } from "../draw";

const json = (value: unknown) => Promise.resolve(new Response(JSON.stringify(value)));
const DAY: UsageSumView = { date: "2026-01-01", agentId: "a", turns: 2, inputTokens: 1500, outputTokens: 30, cacheReadTokens: 0, cacheWriteTokens: 0, estimated: false };
const USAGE: UsageView = { inputTokens: 1500, outputTokens: 30, cacheReadTokens: 0, cacheWriteTokens: 0, estimated: false };

const ADMIN = { id: "me", role: "admin" } as MeView;

async function settled(drawn: Drawn): Promise<Drawn> {
  await act(async () => {});
  await act(async () => {});
  return drawn;
}

const paid = (amount: string) => ({ cost: { amount, currency: "USD" }, calls: 1, unpricedCalls: 0 });

async function usagePage(...items: UsageSumView[]): Promise<string[][][]> {
  respond.mockImplementation(() => json({ items }));
  const drawn = await settled(draw(<UsagePage me={ADMIN} onMenu={() => {}} />));
  const cells = (row: Element) => [...row.children].map((cell) => cell.textContent!.trim());
  return [...drawn.place.querySelectorAll("table")].map((table) => [...table.querySelectorAll("tr")].map(cells));
}

it("adds up turns and tokens by agent and by day, with the share that came from the provider's cache", async () => {
  const now = Date.parse("2026-01-02T12:00:00Z");
  vi.spyOn(Date, "now").mockReturnValue(now);
  knownAgents.set([{ id: "a", name: "Advisor" } as AgentView]);
  const cached = { ...DAY, date: "2026-01-02", estimated: true, cacheReadTokens: 1200 };
  const [agents, , days] = await usagePage(DAY, cached, { ...DAY, agentId: "b", inputTokens: 9000 });
  vi.restoreAllMocks();
  expect(agents).toEqual([
    ["Agent", "Answers", "Input tokens", "Cached input", "Output tokens"],
    ["Deleted agent", "2", "9,000", "–", "30"],
    ["Advisor", "4", "3,000", "40%", "60 estimated"],
    ["Total", "6", "12,000", "10%", "90 estimated"],
  ]);
  expect(days!.slice(1, 4)).toEqual([
    ["2026-01-02", "2", "1,500", "80%", "30 estimated"],
    ["2026-01-01", "4", "10,500", "–", "60"],
    ["2025-12-31", "0", "0", "–", "0"],
  ]);
  knownAgents.set([]);
  expect(days).toHaveLength(1 + 30 + 1);
});

it("does not speak of a cache where there is none", async () => {
  const [agents] = await usagePage(DAY);
  expect(agents![0]).toEqual(["Agent", "Answers", "Input tokens", "Output tokens"]);
});

it("shows what models cost, exactly added up, and a bar for each budget", async () => {
  const now = Date.parse("2026-01-02T12:00:00Z");
  vi.spyOn(Date, "now").mockReturnValue(now);
  const items = [
    { ...DAY, model: "a/one", keyId: "k", ...paid("0.1") },
    { ...DAY, model: "a/one", keyId: null, ...paid("0.2") },
    { ...DAY, model: "b/two", keyId: null, inputTokens: 1, unpricedCalls: 3 },
  ];
  const budget = { id: "me", period: "month", currency: "USD", resetsAt: "2026-02-01T00:00:00.000Z" };
  const budgets = [
    { ...budget, scope: "user", limit: "10.00", spent: "9.00", reserved: "0.50" },
    { ...budget, scope: "key", id: "k", limit: "1.00", spent: "1.00", reserved: "0.00" },
  ];
  respond.mockImplementation((url) => json(url.pathname === "/api/keys" ? { items: [{ id: "k", name: "script" }] } : { items, budgets }));
  const { place } = await settled(draw(<UsagePage me={ADMIN} onMenu={() => {}} />));
  vi.restoreAllMocks();
  const cells = (row: Element) => [...row.children].map((cell) => cell.textContent!.trim());
  const tables = [...place.querySelectorAll("table")].map((table) => [...table.querySelectorAll("tr")].map(cells));
  const costs = (at: number) => tables[at]!.slice(1).map((row) => [row[0], row.at(-1)]);
  expect(costs(1)).toEqual([["a/one", "$0.30"], ["b/two", "Not known"], ["Total", "At least $0.30"]]);
  expect(costs(2).slice(0, 2)).toEqual(expect.arrayContaining([["script", "$0.10"], ["Without a key", "At least $0.20"]]));
  expect(place.textContent).toContain("No price was known for b/two (3 model calls).");
  const meters = [...place.querySelectorAll("[role=meter]")];
  expect(meters.map((it) => [it.getAttribute("aria-label"), it.getAttribute("aria-valuetext"), it.getAttribute("data-level")])).toEqual([
    ["Your budget per month", "$9.00 of $10.00", "high"],
    ["script per month", "$1.00 of $1.00", "full"],
  ]);
  expect(meters[0]!.querySelector<HTMLElement>(".reserved")!.style.width).toBe("5%");
});

it("calls nothing free whose price isn't known: names the models, and leads an admin to where a price is set", async () => {
  const free = { ...DAY, model: "guide", ...paid("0.00") };
  respond.mockImplementation(() => json({ items: [free, { ...DAY, model: "b/two", cost: null, unpricedCalls: 1 }] }));
  const page = async (me: MeView) => (await settled(draw(<UsagePage me={me} onMenu={() => {}} />))).place;
  const place = await page(ADMIN);
  expect([...place.querySelectorAll(".totals > *")].at(-1)!.textContent).toBe("CostNot known");
  expect(place.querySelector("a[href='#/gateways']")!.parentElement!.textContent).toBe(
    "No price was known for b/two (1 model call). A price counts from the next call on. Set a price",
  );
  expect(place.querySelectorAll(".chart")).toHaveLength(2); // of tokens and turns: there is no cost to draw
  const other = await page({ ...ADMIN, role: "user" } as MeView);
  expect(other.querySelector("a[href='#/gateways']")).toBe(null);
  expect(other.textContent).toContain("An administrator can set it under Models.");
});

it("has a day for every day, also for those before the last 30 that the server tells of", () => {
  const now = Date.parse("2026-03-30T23:59:00Z");
  expect([daysOf([], now)[0], daysOf([], now).at(-1), daysOf([], now).length]).toEqual(["2026-03-01", "2026-03-30", 30]);
  expect(daysOf([{ ...DAY, date: "2026-02-27" }], now).slice(0, 3)).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
});

async function facts(usage: UsageView, prefixShare: number | null = null, cost: CostView | null = null): Promise<string[]> {
  const turn: Partial<TurnView> = { conversationId: "c", status: "COMPLETED", endedAt: "2026-01-01T00:00:01.000Z", startedAt: "2026-01-01T00:00:00.000Z", model: "m", usage, cost };
  const receipt = { components: [], messageIds: [], tools: [], tokenEstimate: 1, droppedMessages: 0, summary: null, prefixShare };
  respond.mockImplementation((url) => {
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

it("says in a turn's details what it cost", async () => {
  expect((await facts(USAGE)).filter((it) => it.startsWith("Cost"))).toEqual(["CostNot known (no price for m)"]);
  expect(await facts(USAGE, null, { amount: "0.000105", currency: "USD" })).toContain("Cost$0.00011");
});

it("names the models of a turn's calls that have no price", () => {
  const call = (model: string | null, cost?: CostView) => ({ iteration: 1, ms: 1, model, usage: { input_tokens: 1, output_tokens: 1, cost } as EventUsage });
  const free = { amount: "0.00", currency: "USD" };
  expect(unpricedModels([call("a"), call("b", free), call("a"), call(null)], "m")).toEqual(["a", "m"]);
  expect(unpricedModels([{ ...call("a"), usage: null }], "m")).toEqual(["m"]); // the log doesn't tell
  expect(unpricedModels([call("b", free)], "m")).toEqual([]);
});

it("says how much of the request was the same as the last one", async () => {
  expect(await facts(USAGE, 0.934)).toContain("Same as previous request93%");
  expect((await facts(USAGE)).filter((it) => it.startsWith("Same"))).toEqual([]);
});
