import { type AgentToolView } from "@threadkeep/client";
import { expect, it } from "vitest";

import { choiceFor, effectOf, otherRules, patchOf, withAccess, type Rules } from "../../src/agents/permissions";

const rules: Rules = {
  "*": { access: "ask" },
  "office.*": { access: "allow" },
  "office.remove_file": { access: "deny", effect: "write" },
  "office.read": { effect: "read" },
  "gone.tool": { access: "ask" },
};
const tool = (name: string, effect: AgentToolView["effect"] = "write", server = "office"): AgentToolView => ({ server, name, effect, description: "" });

it.each([
  ["office.remove_file", "deny", true],
  ["office.read", "allow", false],
  ["office.*", "allow", true],
  ["shop.order", "ask", false],
  ["shop.*", "ask", false],
  ["client.*", "allow", false],
  ["client.scroll", "allow", false],
])("knows what counts for %s", (name, access, isOwn) => {
  expect(choiceFor(rules, name)).toEqual({ access, isOwn });
});

it("changes the access of one rule and nothing else of it", () => {
  expect(withAccess(rules, "office.remove_file", null)["office.remove_file"]).toEqual({ effect: "write" });
  expect(withAccess(rules, "office.read", "ask")["office.read"]).toEqual({ access: "ask", effect: "read" });
  expect(Object.keys(withAccess(rules, "gone.tool", null))).not.toContain("gone.tool");
});

it("sends what was changed, as a merge patch", () => {
  const changed = withAccess(withAccess(withAccess(rules, "gone.tool", null), "office.remove_file", null), "shop.order", "allow");
  expect(patchOf(rules, changed)).toEqual({ "gone.tool": null, "office.remove_file": { access: null }, "shop.order": { access: "allow" } });
  expect(patchOf(rules, rules)).toEqual({});
});

it("believes a server only if it is trusted, and a rule in any case", () => {
  expect(effectOf(rules, tool("list", "read"), false)).toBe("write");
  expect(effectOf(rules, tool("list", "read"), true)).toBe("read");
  expect(effectOf(rules, tool("read", "write"), false)).toBe("read");
});

it("names the rules of tools that are not there", () => {
  expect(otherRules(rules, [tool("remove_file"), tool("read")], ["office"])).toEqual(["gone.tool"]);
});
