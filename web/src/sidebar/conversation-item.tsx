import { type ConversationView } from "@threadkeep/client";
import { Ellipsis } from "lucide-react";
import { memo, useRef, useState } from "react";

import { useConversationActions } from "../hooks/use-conversation-actions";
import { useFocusAfterClose } from "../hooks/use-focus-after-close";
import { conversations } from "../state/front-end";
import { hrefOf } from "../state/route";
import { Menu } from "../ui/menu";
import { toastProblem } from "../ui/problem-bar";
import { RenameForm } from "../ui/rename-form";
import { useWords } from "../words";

interface Props {
  conversation: ConversationView;
  agent: string;
  /** Whether its turn waits for the user. */
  isWaiting: boolean;
  isOpen: boolean;
}

export const ConversationItem = memo(function ConversationItem({ conversation, agent, isWaiting, isOpen }: Props) {
  const words = useWords();
  const [renaming, setRenaming] = useState(false);
  const actions = useConversationActions(conversation, () => setRenaming(true));
  const { id, activeTurnId } = conversation;
  const title = conversation.title || words.untitled;
  const link = useRef<HTMLAnchorElement>(null);
  useFocusAfterClose(renaming, () => link.current);
  const rename = (next: string | null) => {
    setRenaming(false);
    if (next === null) return;
    conversations.change(id, { title: next || null }).catch((error: unknown) => toastProblem(words, error));
  };
  if (renaming)
    return (
      <li>
        <RenameForm title={conversation.title ?? ""} onDone={rename} />
      </li>
    );
  return (
    <li>
      <a ref={link} href={hrefOf({ name: "conversation", id })} aria-current={isOpen ? "page" : undefined} title={title}>
        <span className="title" dir="auto">
          {title}
        </span>
        {agent && <small>{agent}</small>}
        {activeTurnId && (
          <span
            className={isWaiting ? "pulse asks" : "pulse"}
            role="img"
            aria-label={isWaiting ? words.waitingForYou : words.running}
          />
        )}
      </a>
      <Menu label={words.actionsFor(title)} groups={actions}>
        <Ellipsis aria-hidden />
      </Menu>
    </li>
  );
});
