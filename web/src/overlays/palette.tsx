import "../styles/overlays.css";

import { type SearchHitView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { CornerDownLeft, Search, X } from "lucide-react";
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";

import { isLocal } from "../api/api";
import { agents, inOrder, isGuide, listedAgentName } from "../state/agents";
import { conversations } from "../state/front-end";
import { minute } from "../state/minute";
import { closeOverlay, COMMAND, overlay } from "../state/overlay";
import { agentChoices, agentSettingChoices, conversationChoices, isWide, matching, type Choice, type ChoiceGroup } from "../state/palette";
import { setLanguage, setTheme, theme } from "../state/preferences";
import { go, route } from "../state/route";
import { filtered, grouped, hasFilters, NO_FILTERS, type SearchFilters } from "../state/search";
import { session } from "../state/session";
import { canShare, toShare } from "../state/sharing";
import { useCanSignOut, useSignOut } from "../state/use-sign-out";
import { toastProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { relativeTime } from "../words/format";
import { language } from "../words/language";
import { KEYWORDS, useSearchWords } from "../words/search";
import { FoundMessage, MarkedTitle } from "./marked-text";
import { SearchFiltersRow } from "./search-filters";
import { useSearch } from "./use-search";

/** One letter is in every conversation. */
const LEAST_LETTERS = 2;
/** With many agents, what was said comes before the settings of all of them. */
const MOST_SETTINGS = 6;

/** The search: finds what was said, and any place or action, by a few letters. */
export function Palette() {
  const words = useWords();
  const searchWords = useSearchWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const list = useId();
  const [text, setText] = useState("");
  /** By its key: results that arrive meanwhile move the others. */
  const [chosenId, choose] = useState<string | null>(null);
  const [filters, setFilters] = useState(NO_FILTERS);
  const wanted = text.trim();
  const { hits, hasMore, readOn, isSearching, describeNothing } = useSearch(wanted.length < LEAST_LETTERS && !isWide(wanted) ? "" : wanted, filters);
  /** The conversations whose hits are all shown. */
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const unfold = (conversationId: string, firstId: string) => {
    setUnfolded((now) => new Set([...now, conversationId]));
    choose(firstId);
  };
  const onMore = hasMore ? () => void readOn().catch((error: unknown) => toastProblem(words, error)) : null;
  const groups = matching(useGroups(wanted, filters, { hits, unfolded, onUnfold: unfold, onMore }), text);
  const choices = groups.flatMap((group) => group.choices);
  const at = Math.max(0, choices.findIndex(({ id }) => id === chosenId));
  const chosen = choices[at];
  const isFiltered = hasFilters(filters);
  const hindrance = describeNothing(words);
  const filter = (next: SearchFilters) => {
    setFilters(next);
    choose(null);
  };
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    document.getElementById(`${list}${chosen?.id}`)?.scrollIntoView({ block: "nearest" });
  }, [list, chosen?.id]);

  const run = (choice: Choice | undefined) => {
    if (!choice) return;
    if (!choice.more) dialog.current?.close();
    const from = location.hash;
    choice.run();
    // The next Tab goes on in the page, not where the palette was opened.
    if (location.hash !== from) document.getElementById("main")?.focus({ preventScroll: true });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "ArrowDown") choose(choices[(at + 1) % choices.length]?.id ?? null);
    else if (event.key === "ArrowUp") choose(choices.at(at - 1)?.id ?? null);
    else if (event.key === "Enter") run(chosen);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog}
      className="overlay palette"
      aria-label={words.palette}
      onClose={closeOverlay}
      onClick={(event) => event.target === dialog.current && dialog.current.close()}
    >
      <div className="ask">
        <Search aria-hidden />
        <input
          ref={field}
          autoFocus
          role="combobox"
          aria-label={words.palette}
          aria-expanded
          aria-controls={list}
          aria-activedescendant={chosen && `${list}${chosen.id}`}
          autoComplete="off"
          placeholder={searchWords.hint}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setUnfolded(new Set());
            choose(null);
          }}
          onKeyDown={onKeyDown}
        />
        {text && (
          <button
            type="button"
            className="icon"
            aria-label={searchWords.clear}
            onClick={() => {
              setText("");
              field.current?.focus();
            }}
          >
            <X aria-hidden />
          </button>
        )}
        <button type="button" className="quiet leave" onClick={() => dialog.current?.close()}>
          <kbd aria-hidden>Esc</kbd>
          <span>{words.close}</span>
        </button>
      </div>
      <SearchFiltersRow filters={filters} onChange={filter} />
      <div id={list} className="palette-list" role="listbox" aria-label={words.palette} aria-busy={isSearching}>
        {groups.map(({ label, choices: some }) => (
          <div key={label} role="group" aria-label={label}>
            <small aria-hidden>{label}</small>
            {some.map((choice) => (
              <div
                key={choice.id}
                id={`${list}${choice.id}`}
                role="option"
                className={choice.isFurther ? "further" : undefined}
                aria-selected={choice === chosen}
                onPointerMove={() => choose(choice.id)}
                onClick={() => run(choice)}
              >
                {choice.more && <span className="more">{choice.more}</span>}
                {!choice.isFurther && !choice.more && (
                  <span className="line">
                    <MarkedTitle title={choice.label} typed={wanted} />
                    {choice.about && <small dir="auto">{choice.about}</small>}
                    {choice.hint && <kbd>{choice.hint}</kbd>}
                  </span>
                )}
                {choice.hit && (
                  <span className="line">
                    <FoundMessage hit={choice.hit} />
                    {choice.isFurther && <small>{choice.about}</small>}
                  </span>
                )}
              </div>
            ))}
          </div>
        ))}
      </div>
      <p className={choices.length ? "unseen" : "nothing"} role="status">
        {!choices.length ? (hindrance ?? searchWords.nothing(/\s/.test(wanted), isFiltered)) : hits.length && !isSearching ? searchWords.resultCount(countOf(hits), hasMore) : ""}
      </p>
      {!choices.length && hindrance === null && isFiltered && (
        <button
          type="button"
          className="unfiltered"
          onClick={() => {
            filter(NO_FILTERS);
            field.current?.focus(); // the button disappears
          }}
        >
          {searchWords.withoutFilters}
        </button>
      )}
      <footer aria-hidden>
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> {searchWords.toChoose}
        </span>
        <span>
          <kbd>
            <CornerDownLeft />
          </kbd>{" "}
          {searchWords.toOpen}
        </span>
      </footer>
    </dialog>
  );
}

function countOf(hits: readonly SearchHitView[]): number {
  return new Set(hits.map((it) => it.conversationId)).size;
}

interface FoundByServer {
  hits: readonly SearchHitView[];
  unfolded: ReadonlySet<string>;
  onUnfold: (conversationId: string, firstId: string) => void;
  /** Finds older messages, where there are any. */
  onMore: (() => void) | null;
}

function useGroups(wanted: string, filters: SearchFilters, { hits, unfolded, onUnfold, onMore }: FoundByServer): ChoiceGroup[] {
  const words = useWords();
  const searchWords = useSearchWords();
  const signOut = useSignOut();
  const listed = useStore(conversations.state).items;
  const all = useStore(agents);
  const canSignOut = useCanSignOut();
  const who = useStore(session);
  const isAdmin = who.state === "in" && who.me.role === "admin";
  const worn = useStore(theme);
  const now = useStore(minute);
  const spoken = useStore(language);
  const about = (agentId: string, at: string) =>
    [listedAgentName(all, agentId, words.deletedAgent), relativeTime(at, words.locale, now) || words.justNow].join(" · ");
  const found = grouped(wanted, filtered(listed, filters), hits);
  const countMore = (count: number) => searchWords.moreHere(count, onMore !== null);
  const choices = conversationChoices(found, { untitled: words.untitled, about, unfolded, countMore, onUnfold, go });
  if (onMore) choices.push({ id: "more", label: "", more: searchWords.moreResults, isFound: true, run: onMore });
  const talks = { label: wanted ? words.conversations : searchWords.recent, choices };
  if (hasFilters(filters)) return [talks];
  return [
    talks,
    { label: words.actions, choices: actions() },
    { label: words.agents, choices: agentChoices(all, words.startChatWith, go) },
    { label: searchWords.agentSettings, choices: wanted ? agentSettings() : [], most: MOST_SETTINGS },
  ];

  function actions(): Choice[] {
    const isDark = worn === "dark";
    const guide = all.find(isGuide);
    return [
      { id: "new", label: words.newConversation, hint: `${COMMAND} ⇧ O`, run: () => go({ name: "new", agentId: null }) },
      ...(guide ? [{ id: "tour", label: words.takeTour, run: () => go({ name: "new", agentId: guide.id }) }] : []),
      { id: "agents", label: words.agents, run: () => go({ name: "agents" }) },
      { id: "newAgent", label: words.newAgent, run: () => go({ name: "agent", id: "new" }) },
      { id: "briefings", label: words.briefings, run: () => go({ name: "briefings" }) },
      { id: "usage", label: words.usage, keywords: KEYWORDS.usage, run: () => go({ name: "usage" }) },
      { id: "archive", label: words.archivedConversations, keywords: KEYWORDS.archive, run: () => go({ name: "archive" }) },
      { id: "deleted", label: words.recentlyDeleted, keywords: KEYWORDS.deleted, run: () => go({ name: "deleted" }) },
      { id: "conversations", label: words.allConversations, keywords: KEYWORDS.conversations, run: () => go({ name: "conversations" }) },
      ...(canShare ? [share()] : []),
      { id: "import", label: searchWords.import, keywords: KEYWORDS.import, run: () => go({ name: "import" }) },
      { id: "memory", label: searchWords.memory, keywords: KEYWORDS.memory, run: () => go({ name: "memory" }) },
      { id: "settings", label: words.settings, keywords: KEYWORDS.settings, run: () => go({ name: "settings" }) },
      ...(isAdmin ? [{ id: "models", label: searchWords.models, keywords: KEYWORDS.models, run: () => go({ name: "gateways" }) }] : []),
      ...(isAdmin ? [{ id: "running", label: searchWords.running, keywords: KEYWORDS.running, run: () => go({ name: "running" }) }] : []),
      ...(isAdmin && !isLocal ? [{ id: "users", label: searchWords.people, keywords: KEYWORDS.people, run: () => go({ name: "users" }) }] : []),
      { id: "keys", label: searchWords.apiKeys, keywords: KEYWORDS.keys, run: () => go({ name: "keys" }) },
      ...(canSignOut && !isLocal ? [{ id: "sessions", label: searchWords.sessions, keywords: KEYWORDS.sessions, run: () => go({ name: "settings" }) }] : []),
      { id: "notifications", label: searchWords.notifications, keywords: KEYWORDS.notifications, run: () => go({ name: "settings" }) },
      { id: "offline", label: searchWords.offline, keywords: KEYWORDS.offline, run: () => go({ name: "settings" }) },
      { id: "theme", label: isDark ? words.lightMode : words.darkMode, keywords: KEYWORDS.theme, run: () => setTheme(isDark ? "light" : "dark") },
      { id: "language", label: spoken === "zh" ? "English" : "中文", keywords: KEYWORDS.language, run: () => setLanguage(spoken === "zh" ? "en" : "zh") },
      { id: "shortcuts", label: words.shortcuts, keywords: KEYWORDS.shortcuts, hint: "?", run: () => setTimeout(() => overlay.set("shortcuts")) },
      ...(canSignOut ? [{ id: "signOut", label: words.signOut, run: () => signOut() }] : []),
    ];
  }

  /** The agent that the user is with comes first. */
  function agentSettings(): Choice[] {
    const at = route.get();
    const agentId = at.name === "agent" ? at.id : at.name === "new" ? at.agentId : at.name === "conversation" && listed.find(({ id }) => id === at.id)?.agentId;
    const ordered = inOrder(all).sort((one, other) => Number(other.id === agentId) - Number(one.id === agentId));
    return agentSettingChoices(ordered, searchWords.agentTabs, KEYWORDS.agentTabs, searchWords.agentTab, go);
  }

  function share(): Choice {
    const at = route.get();
    const common = { id: "share", keywords: KEYWORDS.share };
    if (at.name !== "conversation") return { ...common, label: searchWords.shareOne, about: searchWords.shareHow, run: () => go({ name: "conversations" }) };
    return { ...common, label: searchWords.share, run: () => setTimeout(() => toShare.set({ conversationId: at.id })) };
  }
}
