import { type ConversationView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { Search } from "lucide-react";
import { useRef, useState, type KeyboardEvent } from "react";

import { useRowFocus } from "../hooks/use-row-focus";
import { agents, otherAgentName } from "../state/agents";
import { approvals, conversations } from "../state/front-end";
import { ScrollSentinel } from "../ui/scroll-sentinel";
import { useWords } from "../words";
import { dayGroup } from "../words/format";
import { ConversationItem } from "./conversation-item";
import { SearchResults } from "./search-results";

const GROUPS = ["pinned", "today", "yesterday", "lastWeek", "lastMonth", "older"] as const;

export function ConversationList({ openId }: { openId: string | null }) {
  const words = useWords();
  const [filter, setFilter] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  useRowFocus(list);
  const wanted = filter.trim();
  /** Up and down go through the links; above the first is the field. */
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    const links = [...list.current!.querySelectorAll<HTMLElement>("a")];
    const at = links.indexOf(document.activeElement as HTMLElement);
    const isField = document.activeElement === field.current;
    if (!isField && at < 0) return; // in a menu, or a title being edited
    if (event.key === "ArrowDown") links[at + 1]?.focus();
    else if (event.key === "ArrowUp") (at > 0 ? links[at - 1] : field.current)?.focus();
    else if (event.key === "Enter" && isField) links[0]?.click();
    else if (event.key === "Escape" && wanted) {
      setFilter("");
      field.current?.focus();
    } else return;
    event.preventDefault();
  };
  return (
    <nav aria-label={words.conversations} className="conversations" onKeyDown={onKeyDown}>
      <div className="find">
        <Search aria-hidden />
        <input
          ref={field}
          id="filter"
          type="search"
          aria-label={words.filter}
          placeholder={words.filter}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
      </div>
      <div ref={list} className="list">
        {wanted ? <SearchResults query={wanted} /> : <GroupedByDay openId={openId} />}
      </div>
    </nav>
  );
}

function GroupedByDay({ openId }: { openId: string | null }) {
  const words = useWords();
  const all = useStore(agents);
  const { items, nextCursor, state } = useStore(conversations.state);
  const waiting = new Set(useStore(approvals.items).map((it) => it.conversationId));
  const groups = GROUPS.map((name) => ({ name, members: items.filter((it) => groupOf(it) === name) }));
  return (
    <>
      {groups.filter(({ members }) => members.length).map(({ name, members }) => (
        <section key={name} aria-label={words[name]}>
          <h2>{words[name]}</h2>
          <ul>
            {members.map((it) => (
              <ConversationItem
                key={it.id}
                conversation={it}
                agent={otherAgentName(all, it.agentId)}
                isWaiting={waiting.has(it.id)}
                isOpen={it.id === openId}
              />
            ))}
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
    </>
  );
}

function groupOf({ pinned, updatedAt }: ConversationView): (typeof GROUPS)[number] {
  return pinned ? "pinned" : dayGroup(updatedAt);
}
