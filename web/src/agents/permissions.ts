/** What an agent's tools may do, from its rules. Pure; the server decides the same (domain/tool_rules.py). */

import { type AgentToolView, type ToolAccess, type ToolEffect, type ToolRuleView } from "@threadkeep/client";

export type Rules = Readonly<Record<string, ToolRuleView>>;

/** The rule for all tools, except those that clients bring. */
export const ALL = "*";
/** The rule for all tools that clients bring. */
export const OF_CLIENTS = "client.*";

export interface Choice {
  access: ToolAccess;
  /** Whether a rule of its own says so. */
  isOwn: boolean;
}

export const serverRule = (server: string) => `${server}.*`;
export const toolRule = ({ server, name }: Pick<AgentToolView, "server" | "name">) => `${server}.${name}`;

/** What counts for a rule's name: the rule itself, or else the next wider one. */
export function choiceFor(rules: Rules, name: string): Choice {
  const [server = ""] = name.split(".");
  const wider = [serverRule(server), ...(server === "client" ? [] : [ALL])];
  const own = rules[name]?.access;
  const inherited = wider.filter((it) => it !== name).map((it) => rules[it]?.access);
  return { access: own ?? inherited.find(Boolean) ?? "allow", isOwn: own !== undefined };
}

/** The rules with another access; null leaves it to the wider rule. */
export function withAccess(rules: Rules, name: string, access: ToolAccess | null): Rules {
  const { [name]: { access: _, ...rest } = {}, ...others } = rules;
  const rule = { ...rest, ...(access && { access }) };
  return Object.keys(rule).length ? { ...others, [name]: rule } : others;
}

/** What a call does, as far as the server may say so itself. */
export function effectOf(rules: Rules, tool: AgentToolView, isTrusted: boolean): ToolEffect {
  const rule = [toolRule(tool), serverRule(tool.server), ALL].map((it) => rules[it]?.effect).find(Boolean);
  return rule ?? (isTrusted ? tool.effect : "write");
}

/** The names of rules that no shown tool or server has: of a server that is gone, or can't be reached. */
export function otherRules(rules: Rules, tools: readonly AgentToolView[], servers: readonly string[]): string[] {
  const shown = new Set([ALL, OF_CLIENTS, ...tools.map(toolRule), ...servers.map(serverRule)]);
  return Object.keys(rules).filter((it) => !shown.has(it) && rules[it]!.access).sort();
}

/** A merge patch from some rules to others. */
export function patchOf(before: Rules, after: Rules): Record<string, { access: ToolAccess | null } | null> {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const changed = names.filter((it) => before[it]?.access !== after[it]?.access);
  return Object.fromEntries(changed.map((it) => [it, after[it] ? { access: after[it].access ?? null } : null]));
}
