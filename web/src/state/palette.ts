/** What the palette offers, and which of it match a text. */

import { type AgentView, type ConversationView, type SearchHitView } from "@threadkeep/client";

import { hrefOf, type Route } from "./route";

export interface Choice {
  /** Identifies it among the others. */
  id: string;
  label: string;
  hint?: string;
  /** Whether the server found it by the text, which its label need not have. */
  isFound?: boolean;
  run: () => void;
}

export interface ChoiceGroup {
  label: string;
  choices: readonly Choice[];
}

const MOST_OF_A_KIND = 12;

interface Ranked {
  choice: Choice;
  rank: number;
}

/** The groups with what fits the text, the best first in each and among them; groups without any are left out. */
export function matching(groups: readonly ChoiceGroup[], text: string): ChoiceGroup[] {
  const wanted = text.trim().toLowerCase();
  return groups
    .map(({ label, choices }) => ({ label, ranked: fitting(choices, wanted) }))
    .filter(({ ranked }) => ranked.length > 0)
    .sort((one, other) => one.ranked[0]!.rank - other.ranked[0]!.rank)
    .map(({ label, ranked }) => ({ label, choices: ranked.slice(0, MOST_OF_A_KIND).map(({ choice }) => choice) }));
}

function fitting(choices: readonly Choice[], wanted: string): Ranked[] {
  return choices
    .map((choice) => ({ choice, rank: Math.min(rankOf(choice.label.toLowerCase(), wanted), foundRank(choice)) }))
    .filter(({ rank }) => rank < Infinity)
    .sort((one, other) => one.rank - other.rank);
}

/** How well a label fits: at its beginning, at that of a word, anywhere, or with all words somewhere. */
function rankOf(label: string, wanted: string): number {
  if (label.startsWith(wanted)) return 0;
  if (label.includes(` ${wanted}`)) return 1;
  if (label.includes(wanted)) return 2;
  return wanted.split(/\s+/).every((word) => label.includes(word)) ? 3 : Infinity;
}

/** Below whatever fits by its label. */
function foundRank({ isFound }: Choice): number {
  return isFound ? 4 : Infinity;
}

export function conversationChoices(
  listed: readonly ConversationView[],
  found: readonly SearchHitView[],
  untitled: string,
  go: (route: Route) => void,
): Choice[] {
  const hits = new Map(found.map((it) => [it.conversationId, it.title]));
  const choice = (id: string, title: string | null): Choice => ({
    id,
    label: title || untitled,
    isFound: hits.has(id),
    run: () => go({ name: "conversation", id }),
  });
  const known = new Set(listed.map(({ id }) => id));
  const others = [...hits].filter(([id]) => !known.has(id));
  return [...listed.map(({ id, title }) => choice(id, title)), ...others.map(([id, title]) => choice(id, title))];
}

export function agentChoices(
  agents: readonly AgentView[],
  startWith: (name: string) => string,
  go: (route: Route) => void,
): Choice[] {
  return agents.map(({ id, name }) => ({
    id: hrefOf({ name: "new", agentId: id }),
    label: startWith(name),
    run: () => go({ name: "new", agentId: id }),
  }));
}
