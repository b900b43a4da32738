import { type ConversationView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useRef, type ReactNode } from "react";

import { TopBar } from "../chat/top-bar";
import { useRowFocus } from "../hooks/use-row-focus";
import { useSelection } from "../hooks/use-selection";
import { agentName, agents } from "../state/agents";
import { BulkBar, type BulkAction } from "../ui/bulk-bar";
import { describeProblem } from "../ui/problem-bar";
import { ScrollSentinel } from "../ui/scroll-sentinel";
import { useWords } from "../words";
import { useBulkWords } from "../words/bulk";
import { type ConversationsByStatus } from "./use-conversations-by-status";

interface Props {
  title: string;
  explanation?: string;
  empty: string;
  list: ConversationsByStatus;
  onAgain: () => void;
  onMore: () => Promise<void>;
  onMenu: () => void;
  /** What else leads somewhere from here. */
  links?: ReactNode;
  /** The title, as a link if it can be opened. */
  titleOf: (conversation: ConversationView) => ReactNode;
  /** When it was last changed, archived or deleted. */
  whenOf: (conversation: ConversationView) => string;
  actionsOf?: (conversation: ConversationView) => ReactNode;
  /** What can be done with several. */
  bulkActions: readonly BulkAction[];
}

/** A page of conversations, to move one or several elsewhere. */
export function SelectableList({ title, explanation, empty, list, onAgain, onMore, onMenu, links, titleOf, whenOf, actionsOf, bulkActions }: Props) {
  const words = useWords();
  const all = useStore(agents);
  const rows = useRef<HTMLUListElement>(null);
  useRowFocus(rows);
  const bulkWords = useBulkWords();
  const selection = useSelection(list.items);
  return (
    <div className="page">
      <TopBar title={title} onMenu={onMenu}>
        {links}
      </TopBar>
      <div className="content selectable-list">
        {explanation && <p className="hint">{explanation}</p>}
        {list.state === "loading" && <p className="hint">{words.loading}</p>}
        {list.problem && (
          <p className="hint wrong" role="alert">
            {describeProblem(words, list.problem)}{" "}
            <button type="button" className="link" onClick={onAgain}>
              {words.retry}
            </button>
          </p>
        )}
        {list.state === "ready" && !list.items.length && <p className="nothing">{empty}</p>}
        {list.items.length > 0 && <BulkBar items={list.items} selection={selection} actions={bulkActions} />}
        <ul ref={rows} aria-label={title}>
          {list.items.map((it) => (
            <li key={it.id} data-selected={selection.has(it.id) || undefined}>
              <input
                type="checkbox"
                aria-label={bulkWords.select(it.title || words.untitled)}
                checked={selection.has(it.id)}
                onChange={({ nativeEvent }) => selection.toggle(it.id, (nativeEvent as MouseEvent).shiftKey === true)}
              />
              <div>
                {titleOf(it)}
                <small>{[agentName(all, it.agentId), whenOf(it)].filter(Boolean).join(" · ")}</small>
              </div>
              {actionsOf && <div className="row-actions">{actionsOf(it)}</div>}
            </li>
          ))}
        </ul>
        {list.nextCursor && <ScrollSentinel onSeen={onMore} />}
      </div>
    </div>
  );
}
