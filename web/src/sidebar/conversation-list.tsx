import { type ConversationView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { Search } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState, type CSSProperties, type KeyboardEvent } from "react";
import { flushSync } from "react-dom";

import { useRowFocus } from "../hooks/use-row-focus";
import { useSelection } from "../hooks/use-selection";
import { agents, otherAgentName } from "../state/agents";
import { approvals, conversations } from "../state/front-end";
import { minute } from "../state/minute";
import { COMMAND, overlay } from "../state/overlay";
import { ScrollSentinel } from "../ui/scroll-sentinel";
import { useChunk } from "../ui/use-chunk";
import { useWords } from "../words";
import { dayGroup } from "../words/format";
import { ConversationItem } from "./conversation-item";
import { useRowWindow } from "./use-row-window";

const GROUPS = ["pinned", "today", "yesterday", "lastWeek", "lastMonth", "older"] as const;

const loadSelecting = () => import("./selecting");

export function ConversationList({ openId }: { openId: string | null }) {
  const words = useWords();
  const all = useStore(agents);
  const { items, nextCursor, state } = useStore(conversations.state);
  const waiting = new Set(useStore(approvals.items).map((it) => it.conversationId));
  const today = new Date(useStore(minute)).toDateString();
  const groups = useMemo(() => groupedByDay(items, new Date(today)), [items, today]);
  const rows = useMemo(() => groups.flatMap(({ members }) => members), [groups]);
  const search = useRef<HTMLButtonElement>(null);
  const { list, windows, look, show } = useRowWindow(groups);
  /** The conversation that was scrolled to, when it was opened. */
  const shownId = useRef<string>(null);
  useEffect(() => {
    if (openId === null || (openId !== shownId.current && show(openId))) shownId.current = openId;
  });
  useRowFocus(list);
  /** The row that had the focus last stays mounted, however far the user scrolls. */
  const [focusedId, setFocusedId] = useState<string>();

  const selection = useSelection(rows);
  const [isSelecting, setSelecting] = useState(false);
  const selecting = useChunk(loadSelecting, isSelecting);
  const toggle = useRef(selection.toggle);
  useEffect(() => {
    toggle.current = selection.toggle;
  });
  const select = useCallback((id: string, isRange: boolean) => {
    setSelecting(true);
    toggle.current(id, isRange);
  }, []);
  const focusRow = (row: ConversationView | undefined) => {
    if (!row) return;
    flushSync(() => setFocusedId(row.id));
    list.current!.querySelector<HTMLElement>(`[data-id="${CSS.escape(row.id)}"] :is(a, input)`)?.focus();
  };
  const endSelecting = () => {
    const hadFocus = document.activeElement?.closest(".conversations");
    flushSync(() => {
      setSelecting(false);
      selection.set([]);
    });
    if (!hadFocus) return;
    search.current!.focus();
    focusRow(rows.find((it) => it.id === focusedId));
  };
  /** Up and down go through the rows, Home and End to the first and the last; above the first is the search. */
  const onKeyDown = (event: KeyboardEvent) => {
    const active = document.activeElement!;
    const isRow = active.matches("[data-id] > a, [data-id] > label > input");
    if (!isRow && active !== search.current) return; // in a menu, or a title being edited
    const at = isRow ? rows.findIndex((it) => it.id === focusedId) : -1;
    if (event.key === "ArrowDown") focusRow(rows[at + 1]);
    else if (event.key === "ArrowUp" && at > 0) focusRow(rows[at - 1]);
    else if (event.key === "ArrowUp") search.current!.focus();
    else if (event.key === "Home" && isRow) focusRow(rows[0]);
    else if (event.key === "End" && isRow) focusRow(rows.at(-1));
    else return;
    event.preventDefault();
  };
  return (
    <nav aria-label={words.conversations} className="conversations" onKeyDown={onKeyDown}>
      <button ref={search} type="button" className="find" aria-haspopup="dialog" onClick={() => overlay.set("palette")}>
        <Search aria-hidden /> {words.search}
        <kbd aria-hidden>{COMMAND} K</kbd>
      </button>
      {isSelecting && selecting && <selecting.SelectionBar items={rows} selection={selection} onEnd={endSelecting} />}
      <div
        ref={list}
        className="list"
        onScroll={look}
        onFocus={({ target }) => setFocusedId(target.closest<HTMLElement>("[data-id]")?.dataset["id"])}
      >
        {groups.map(({ name, members }, nth) => (
          <section key={name} aria-label={words[name]}>
            <h2>{words[name]}</h2>
            <ul style={{ "--rows": members.length } as CSSProperties}>
              {members.map((it, at) => {
                const { from, to } = windows[nth]!;
                if ((at < from || at >= to) && it.id !== focusedId) return null;
                return (
                  <li key={it.id} data-id={it.id} aria-setsize={members.length} aria-posinset={at + 1} style={{ "--at": at } as CSSProperties}>
                    {isSelecting && selecting ? (
                      <selecting.SelectableItem conversation={it} isSelected={selection.has(it.id)} hasFocus={it.id === focusedId} onSelect={select} />
                    ) : (
                      <ConversationItem
                        conversation={it}
                        agent={otherAgentName(all, it.agentId)}
                        isWaiting={waiting.has(it.id)}
                        isOpen={it.id === openId}
                        onSelect={select}
                      />
                    )}
                  </li>
                );
              })}
            </ul>
          </section>
        ))}
        {state === "ready" && !items.length && <p className="hint">{words.noConversations}</p>}
        {state === "failed" && (
          <p className="hint">
            {words.listFailed}{" "}
            <button type="button" className="link" onClick={() => void conversations.refresh()}>
              {words.retry}
            </button>
          </p>
        )}
        {nextCursor && <ScrollSentinel onSeen={conversations.readMore} />}
      </div>
    </nav>
  );
}

/** The groups that have members, as they are shown. */
function groupedByDay(items: readonly ConversationView[], today: Date) {
  const groups = GROUPS.map((name) => ({ name, members: [] as ConversationView[] }));
  for (const it of items) groups[GROUPS.indexOf(it.pinned ? "pinned" : dayGroup(it.updatedAt, today))]!.members.push(it);
  return groups.filter(({ members }) => members.length);
}
