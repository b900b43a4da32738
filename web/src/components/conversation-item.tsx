import { memo } from "react";

import { type ConversationView } from "../api/schema";
import { hrefOf } from "../state/route";
import { useWords } from "../words";

interface Props {
  conversation: ConversationView;
  agent: string;
  /** Whether its turn waits for the person. */
  isWaiting: boolean;
  isOpen: boolean;
}

export const ConversationItem = memo(function ConversationItem({ conversation, agent, isWaiting, isOpen }: Props) {
  const words = useWords();
  const { id, title, activeTurnId } = conversation;
  return (
    <li>
      <a href={hrefOf({ name: "conversation", id })} aria-current={isOpen ? "page" : undefined} title={title ?? ""}>
        <span className="title" dir="auto">
          {title || words.untitled}
        </span>
        {activeTurnId && (
          <span
            className={isWaiting ? "pulse asks" : "pulse"}
            role="img"
            aria-label={isWaiting ? words.waitingForYou : words.running}
          />
        )}
        {agent && <small>{agent}</small>}
      </a>
    </li>
  );
});
