import { expect, it } from "vitest";

import { hrefOf, parseRoute, type Route } from "../src/state/route";

it.each<[string, Route]>([
  ["", { name: "new", agentId: null }],
  ["#/", { name: "new", agentId: null }],
  ["#/new/7", { name: "new", agentId: "7" }],
  ["#/agents", { name: "agents" }],
  ["#/agents/7", { name: "agent", id: "7" }],
  ["#/settings", { name: "settings" }],
  ["#/usage", { name: "usage" }],
  ["#/c/7/3", { name: "conversation", id: "7", seq: 3 }],
  ["#/nowhere", { name: "missing" }],
  ["#/c", { name: "missing" }],
])("reads %s", (hash, route) => {
  expect(parseRoute(hash)).toEqual(route);
  expect(parseRoute(hrefOf(route))).toEqual(route);
});
