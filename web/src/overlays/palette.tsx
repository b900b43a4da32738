import "../styles/overlays.css";

import { type SearchHitView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { Search } from "lucide-react";
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";

import { token } from "../api/api";
import { useSearch } from "../hooks/use-search";
import { useSignOut } from "../hooks/use-sign-out";
import { agents } from "../state/agents";
import { conversations } from "../state/front-end";
import { closeOverlay, COMMAND, overlay } from "../state/overlay";
import { agentChoices, conversationChoices, matching, type Choice, type ChoiceGroup } from "../state/palette";
import { language, setLanguage, setTheme, theme } from "../state/preferences";
import { go } from "../state/route";
import { useWords } from "../words";

/** One letter is in every conversation. */
const LEAST_LETTERS = 2;

/** The command palette: finds any place or action by a few letters. */
export function Palette() {
  const words = useWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useId();
  const [text, setText] = useState("");
  /** By its key: results that arrive meanwhile move the others. */
  const [chosenId, choose] = useState<string | null>(null);
  const wanted = text.trim();
  const { hits, describeNothing } = useSearch(wanted.length < LEAST_LETTERS ? "" : wanted);
  const groups = matching(useGroups(hits), text);
  const choices = groups.flatMap((group) => group.choices);
  const at = Math.max(0, choices.findIndex(({ id }) => id === chosenId));
  const chosen = choices[at];
  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    document.getElementById(`${list}${chosen?.id}`)?.scrollIntoView({ block: "nearest" });
  }, [list, chosen?.id]);

  const run = (choice: Choice | undefined) => {
    if (!choice) return;
    dialog.current?.close();
    choice.run();
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
      <label className="ask">
        <Search aria-hidden />
        <input
          autoFocus
          role="combobox"
          aria-label={words.palette}
          aria-expanded
          aria-controls={list}
          aria-activedescendant={chosen && `${list}${chosen.id}`}
          autoComplete="off"
          placeholder={words.paletteHint}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            choose(null);
          }}
          onKeyDown={onKeyDown}
        />
      </label>
      <div id={list} className="palette-list" role="listbox" aria-label={words.palette}>
        {groups.map(({ label, choices: some }) => (
          <div key={label} role="group" aria-label={label}>
            <small aria-hidden>{label}</small>
            {some.map((choice) => (
              <div
                key={choice.id}
                id={`${list}${choice.id}`}
                role="option"
                aria-selected={choice === chosen}
                onPointerMove={() => choose(choice.id)}
                onClick={() => run(choice)}
              >
                <span dir="auto">{choice.label}</span>
                {choice.hint && <kbd>{choice.hint}</kbd>}
              </div>
            ))}
          </div>
        ))}
      </div>
      {!choices.length && (
        <p className="nothing" role="status">
          {describeNothing(words)}
        </p>
      )}
    </dialog>
  );
}

function useGroups(found: readonly SearchHitView[]): ChoiceGroup[] {
  const words = useWords();
  const signOut = useSignOut();
  const listed = useStore(conversations.state).items;
  const all = useStore(agents);
  const isSignedIn = useStore(token) !== null;
  const now = useStore(theme);
  const spoken = useStore(language);
  return [
    { label: words.actions, choices: actions() },
    { label: words.conversations, choices: conversationChoices(listed, found, words.untitled, go) },
    { label: words.agents, choices: agentChoices(all, words.startChatWith, go) },
  ];

  function actions(): Choice[] {
    const isDark = now === "dark";
    return [
      { id: "new", label: words.newConversation, hint: `${COMMAND} ⇧ O`, run: () => go({ name: "new", agentId: null }) },
      { id: "agents", label: words.agents, run: () => go({ name: "agents" }) },
      { id: "newAgent", label: words.newAgent, run: () => go({ name: "agent", id: "new" }) },
      { id: "briefings", label: words.briefings, run: () => go({ name: "briefings" }) },
      { id: "usage", label: words.usage, run: () => go({ name: "usage" }) },
      { id: "archive", label: words.archivedConversations, run: () => go({ name: "archive" }) },
      { id: "deleted", label: words.recentlyDeleted, run: () => go({ name: "deleted" }) },
      { id: "settings", label: words.settings, run: () => go({ name: "settings" }) },
      { id: "theme", label: isDark ? words.lightMode : words.darkMode, run: () => setTheme(isDark ? "light" : "dark") },
      { id: "language", label: spoken === "zh" ? "English" : "中文", run: () => setLanguage(spoken === "zh" ? "en" : "zh") },
      { id: "shortcuts", label: words.shortcuts, hint: "?", run: () => setTimeout(() => overlay.set("shortcuts")) },
      ...(isSignedIn ? [{ id: "signOut", label: words.signOut, run: signOut }] : []),
    ];
  }
}
