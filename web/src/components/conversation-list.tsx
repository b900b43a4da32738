import { Search } from "lucide-react";
import { useState } from "react";

import { agents, otherAgentName } from "../state/agents";
import { approvals } from "../state/approvals";
import { conversations, readMoreConversations, refreshConversations, showConversations } from "../state/conversations";
import { useStore } from "../state/store";
import { useWords } from "../words";
import { dayGroup, type DayGroup } from "../words/format";
import { ConversationItem } from "./conversation-item";
import { SearchResults } from "./search-results";
import { WhenSeen } from "./when-seen";

const GROUPS: DayGroup[] = ["today", "yesterday", "lastWeek", "lastMonth", "older"];

export function ConversationList({ openId }: { openId: string | null }) {
  const words = useWords();
  const all = useStore(agents);
  const list = useStore(conversations);
  const [filter, setFilter] = useState("");
  const wanted = filter.trim().toLowerCase();
  const shown = wanted ? list.items.filter((it) => (it.title ?? "").toLowerCase().includes(wanted)) : list.items;
  const empty = list.status === "active" ? words.noConversations : words.noArchived;
  const waiting = new Set(useStore(approvals).map((it) => it.conversationId));
  return (
    <nav aria-label={words.conversations} className="conversations">
      <div className="find">
        <Search aria-hidden />
        <input
          id="filter"
          type="search"
          aria-label={words.filter}
          placeholder={words.filter}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
      </div>
      <div className="list">
        {GROUPS.map((group) => {
          const items = shown.filter((it) => dayGroup(it.updatedAt) === group);
          if (!items.length) return null;
          return (
            <section key={group} aria-label={words[group]}>
              <h2>{words[group]}</h2>
              <ul>
                {items.map((it) => (
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
          );
        })}
        {wanted && <SearchResults query={filter.trim()} shown={shown} />}
        {!wanted && list.state === "ready" && !shown.length && <p className="hint">{empty}</p>}
        {list.state === "failed" && (
          <p className="hint">
            {words.listFailed}{" "}
            <button type="button" className="link" onClick={() => void refreshConversations()}>
              {words.retry}
            </button>
          </p>
        )}
        {list.nextCursor && <WhenSeen onSeen={readMoreConversations} />}
      </div>
      <button
        type="button"
        className="link quiet"
        onClick={() => showConversations(list.status === "active" ? "archived" : "active")}
      >
        {list.status === "active" ? words.archived : words.active}
      </button>
    </nav>
  );
}
