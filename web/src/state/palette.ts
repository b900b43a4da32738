/** What the palette offers, and which of it match a text. */

import { type AgentView, type SearchHitView } from "@threadkeep/client";

import { hrefOf, type AgentTab, type Route } from "./route";
import { type Found } from "./search";

export interface Choice {
  /** Identifies it among the others. */
  id: string;
  label: string;
  /** What else people call it, word by word. */
  keywords?: string;
  /** Its keys. */
  hint?: string;
  /** Its agent and date, in small letters. */
  about?: string;
  /** A message that was found. */
  hit?: SearchHitView;
  /** Whether it is a further message of the conversation before it: then its label isn’t shown again. */
  isFurther?: boolean;
  /** Whether the server found it by the text, which its label need not have. */
  isFound?: boolean;
  /** Says that it shows more here instead of leading away. */
  more?: string;
  run: () => void;
}

export interface ChoiceGroup {
  label: string;
  choices: readonly Choice[];
  /** How many are shown at most. */
  most?: number;
}

const MOST_AT_FIRST = 6;
const MOST_FITTING = 40;
/** How many messages of one conversation are offered at first. */
const MOST_HITS = 3;

interface Ranked {
  choice: Choice;
  rank: number;
}

/** The groups with what fits the text, the best first in each and among them; groups without any are left out. */
export function matching(groups: readonly ChoiceGroup[], text: string): ChoiceGroup[] {
  const wanted = text.trim().toLowerCase();
  const usual = wanted ? MOST_FITTING : MOST_AT_FIRST;
  return groups
    .map(({ label, choices, most = usual }) => ({ label, most, ranked: fitting(choices, wanted) }))
    .filter(({ ranked }) => ranked.length > 0)
    .sort((one, other) => one.ranked[0]!.rank - other.ranked[0]!.rank)
    .map(({ label, most, ranked }) => ({ label, choices: ranked.filter(({ choice }, index) => index < most || choice.hit || choice.more).map(({ choice }) => choice) }));
}

function fitting(choices: readonly Choice[], wanted: string): Ranked[] {
  return choices
    .map((choice) => ({ choice, rank: Math.min(rankOf(choice.label.toLowerCase(), wanted), keywordRank(choice, wanted), foundRank(choice)) }))
    .filter(({ rank }) => rank < Infinity)
    .sort((one, other) => one.rank - other.rank);
}

/** How well a label fits: at its beginning, at the beginning of a word, anywhere, or with all words somewhere. */
function rankOf(label: string, wanted: string): number {
  if (label.startsWith(wanted)) return 0;
  if (label.includes(` ${wanted}`)) return 1;
  if (label.includes(wanted)) return 2;
  return wanted.split(/\s+/).every((word) => label.includes(word)) ? 3 : Infinity;
}

/** As far down as a label that has all words: each word that was typed begins one of the choice's, or has a Chinese one in it. */
function keywordRank({ keywords = "" }: Choice, wanted: string): number {
  const known = keywords.toLowerCase().split(" ");
  if (wanted.length < 2 && !isWide(wanted)) return Infinity; // one letter begins nearly everything
  const fits = (word: string) => known.some((it) => it.startsWith(word) || (isWide(it) && word.includes(it)));
  return wanted.split(/\s+/).every(fits) ? 3 : Infinity;
}

/** Whether one character is a word of its own, as in Chinese: there are no spaces between words then. */
export function isWide(text: string): boolean {
  return /[\u3040-\u9fff\uac00-\ud7a3]/u.test(text);
}

/** Below whatever fits by its label. */
function foundRank({ isFound }: Choice): number {
  return isFound ? 4 : Infinity;
}

/** How conversations are offered. */
interface Offering {
  untitled: string;
  /** Its agent and date. */
  about: (agentId: string, at: string) => string;
  /** The conversations whose hits are all shown. */
  unfolded: ReadonlySet<string>;
  /** Says how many are not shown. */
  countMore: (count: number) => string;
  /** Shows all hits of a conversation, and chooses the first one that wasn't there. */
  onUnfold: (conversationId: string, firstId: string) => void;
  go: (route: Route) => void;
}

/** Each conversation with its newest hit, then its other hits. */
export function conversationChoices(found: readonly Found[], { untitled, about, unfolded, countMore, onUnfold, go }: Offering): Choice[] {
  return found.flatMap(({ conversationId: id, agentId, title, at, hits }): Choice[] => {
    const common = { label: title || untitled, isFound: true };
    if (!hits.length) return [{ ...common, id, about: about(agentId, at), run: () => go({ name: "conversation", id }) }];
    const all = hits.map((hit, index) => ({
      ...common,
      id: index ? `${id}/${hit.messageId}` : id,
      about: about(agentId, hit.createdAt),
      hit,
      isFurther: index > 0,
      run: () => go(routeTo(hit)),
    }));
    const next = all[MOST_HITS];
    if (!next || unfolded.has(id)) return all;
    const more = countMore(all.length - MOST_HITS);
    return [...all.slice(0, MOST_HITS), { ...common, id: `${id}/more`, more, isFurther: true, run: () => onUnfold(id, next.id) }];
  });
}

/** Where a hit is; on another branch the page asks whether to show it. */
function routeTo({ conversationId, messageId, seq, onPath }: SearchHitView): Route {
  const branchId = onPath ? undefined : (messageId ?? undefined);
  return { name: "conversation", id: conversationId, seq: seq ?? undefined, branchId };
}

export function agentChoices(
  agents: readonly AgentView[],
  startWith: (name: string) => string,
  go: (route: Route) => void,
): Choice[] {
  return agents.map(({ id, name, description }) => ({
    id: hrefOf({ name: "new", agentId: id }),
    label: startWith(name),
    about: description,
    run: () => go({ name: "new", agentId: id }),
  }));
}

export type AgentSettingsTab = AgentTab | "general";

/** The settings of agents, tab by tab, of those that the user may change. */
export function agentSettingChoices(
  agents: readonly AgentView[],
  tabs: Readonly<Record<AgentSettingsTab, string>>,
  keywords: Readonly<Record<AgentSettingsTab, string>>,
  labelOf: (agent: string, tab: string) => string,
  go: (route: Route) => void,
): Choice[] {
  const names = Object.keys(tabs) as AgentSettingsTab[];
  const changeable = agents.filter(({ settings }) => settings !== undefined);
  return names.flatMap((tab) =>
    changeable.map(({ id, name }) => {
      const route: Route = { name: "agent", id, ...(tab !== "general" && { tab }) };
      return { id: hrefOf(route), label: labelOf(name, tabs[tab]), keywords: `${keywords[tab]} ${name}`, run: () => go(route) };
    }),
  );
}
