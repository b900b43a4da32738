import { beforeEach, expect, it } from "vitest";

import { closeTurn, go, hrefOf, openTurn, parseRoute, rename, route, type Route } from "../../src/state/route";

beforeEach(() => rename({ name: "new", agentId: null }));

it.each<[string, Route]>([
  ["#/", { name: "new", agentId: null }],
  ["#/new/a", { name: "new", agentId: "a" }],
  ["#/c/1", { name: "conversation", id: "1" }],
  ["#/c/1/12", { name: "conversation", id: "1", seq: 12 }],
  ["#/c/1/12/m", { name: "conversation", id: "1", seq: 12, branchId: "m" }],
  ["#/c/1/turn/t", { name: "conversation", id: "1", turnId: "t" }],
  ["#/agents/a", { name: "agent", id: "a" }],
  ["#/agents/a/tools", { name: "agent", id: "a", tab: "tools" }],
  ["#/agents", { name: "agents" }],
  ["#/settings", { name: "settings" }],
  ["#/usage", { name: "usage" }],
  ["#/invitation/secret", { name: "invitation", token: "secret" }],
  ["#/missing", { name: "missing" }],
])("%s is a place, and its address", (hash, place) => {
  expect(parseRoute(hash)).toEqual(place);
  expect(hrefOf(place)).toBe(hash);
});

it.each(["#/nowhere", "#/c"])("knows that %s leads nowhere", (hash) => {
  expect(parseRoute(hash)).toEqual({ name: "missing" });
});

it("begins where a sign-in came to nothing", () => {
  expect(parseRoute("#/sign-in?problem=denied&provider=okta")).toEqual({ name: "new", agentId: null });
});

it("finds the tab for advanced settings by the name that the page gives it", () => {
  expect(parseRoute("#/agents/a/advanced")).toEqual({ name: "agent", id: "a", tab: "limits" });
});

it("takes what is no turn for the conversation", () => {
  expect(parseRoute("#/c/1/turn")).toEqual({ name: "conversation", id: "1" });
});

it("has the turn that is open in its address, and keeps where the user reads", () => {
  rename({ name: "conversation", id: "1", seq: 12 });
  openTurn("t");
  expect(location.hash).toBe("#/c/1/turn/t");
  expect(route.get()).toEqual({ name: "conversation", id: "1", seq: 12, turnId: "t" });
  closeTurn();
  expect(route.get()).toEqual({ name: "conversation", id: "1", seq: 12 });
});

it("closes a turn that was opened by a link", () => {
  rename({ name: "conversation", id: "1", turnId: "t" });
  closeTurn();
  expect(location.hash).toBe("#/c/1");
  closeTurn();
  go({ name: "new", agentId: null });
});

it.each(["#/", "#/new/a1", "#/c/c1", "#/c/c1/12", "#/c/c1/12/m3", "#/agents/a1", "#/usage", "#/briefings"])("finds its way back to %s", (hash) => {
  expect(hrefOf(parseRoute(hash))).toBe(hash);
});
