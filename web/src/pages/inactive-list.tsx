import { type ConversationView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { useRef, type ReactNode } from "react";

import { type InactiveConversations } from "../hooks/use-inactive-conversations";
import { useRowFocus } from "../hooks/use-row-focus";
import { agentName, agents } from "../state/agents";
import { describeProblem } from "../ui/problem-bar";
import { ScrollSentinel } from "../ui/scroll-sentinel";
import { TopBar } from "../ui/top-bar";
import { useWords } from "../words";

interface Props {
  title: string;
  explanation: string;
  empty: string;
  list: InactiveConversations;
  onAgain: () => void;
  onMore: () => Promise<void>;
  onMenu: () => void;
  /** The title, as a link if it can be opened. */
  titleOf: (conversation: ConversationView) => ReactNode;
  /** When it was archived or deleted. */
  whenOf: (conversation: ConversationView) => string;
  actionsOf: (conversation: ConversationView) => ReactNode;
}

/** A page of conversations outside the list, each with a button to restore it. */
export function InactiveList({ title, explanation, empty, list, onAgain, onMore, onMenu, titleOf, whenOf, actionsOf }: Props) {
  const words = useWords();
  const all = useStore(agents);
  const rows = useRef<HTMLUListElement>(null);
  useRowFocus(rows);
  return (
    <div className="page">
      <TopBar title={title} onMenu={onMenu} />
      <div className="content inactive-list">
        <p className="hint">{explanation}</p>
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
        <ul ref={rows} aria-label={title}>
          {list.items.map((it) => (
            <li key={it.id}>
              <div>
                {titleOf(it)}
                <small>{[agentName(all, it.agentId), whenOf(it)].filter(Boolean).join(" · ")}</small>
              </div>
              <div className="row-actions">{actionsOf(it)}</div>
            </li>
          ))}
        </ul>
        {list.nextCursor && <ScrollSentinel onSeen={onMore} />}
      </div>
    </div>
  );
}
