import { type ConversationView, type SearchHitView } from "@threadkeep/client";
import { expect, it } from "vitest";

import { filtered, grouped, NO_FILTERS, searchParams } from "../../src/state/search";

const known = (id: string, title: string) => ({ id, title }) as ConversationView;
const hit = (conversationId: string, messageId: string | null, title = "Other") =>
  ({ conversationId, messageId, title }) as SearchHitView;

it("shows each conversation once, with its messages below it", () => {
  const found = grouped("tea", [], [hit("c1", "m3"), hit("c2", "m2"), hit("c1", "m1")]);
  expect(found.map((it) => [it.conversationId, it.hits.map(({ messageId }) => messageId)])).toEqual([
    ["c1", ["m3", "m1"]],
    ["c2", ["m2"]],
  ]);
});

it("shows titles that match first, those the server found beyond the list too", () => {
  const listed = [known("c3", "Green TEA"), known("c4", "Coffee")];
  const found = grouped("tea", listed, [hit("c1", "m1"), hit("c5", null, "Tea set"), hit("c3", "m9")]);
  expect(found.map((it) => [it.conversationId, it.title, it.hits.length])).toEqual([
    ["c3", "Green TEA", 1],
    ["c5", "Tea set", 0],
    ["c1", "Other", 1],
  ]);
});

const NOW = new Date(2026, 2, 10, 15);
const at = (...of: [number, number, number, number?]) => new Date(...(of as [number, number, number])).toISOString();

it("begins a period at midnight of the reader's own calendar and ends days with their last", () => {
  expect(searchParams(NO_FILTERS, NOW)).toEqual({});
  expect(searchParams({ ...NO_FILTERS, agentId: "a", period: "week" }, NOW)).toEqual({ agentId: "a", from: at(2026, 2, 4) });
  const days = { ...NO_FILTERS, period: "days" as const, from: "2026-02-27", to: "2026-02-28" };
  expect(searchParams(days, NOW)).toEqual({ from: at(2026, 1, 27), to: at(2026, 2, 1) });
  expect(searchParams({ ...days, from: "" }, NOW)).toEqual({ to: at(2026, 2, 1) });
});

it("lets through what the server would, of the conversations that are listed", () => {
  const talk = (id: string, agentId: string, updatedAt: string) => ({ id, agentId, updatedAt }) as ConversationView;
  const all = [talk("new", "a", at(2026, 2, 10)), talk("old", "a", at(2026, 2, 1)), talk("others", "b", at(2026, 2, 10))];
  const ids = (filters: object) => filtered(all, { ...NO_FILTERS, ...filters }, NOW).map(({ id }) => id);
  expect(ids({})).toEqual(["new", "old", "others"]);
  expect(ids({ agentId: "a" })).toEqual(["new", "old"]);
  expect(ids({ agentId: "a", period: "today" })).toEqual(["new"]);
  expect(ids({ period: "days", to: "2026-03-01" })).toEqual(["old"]);
});
