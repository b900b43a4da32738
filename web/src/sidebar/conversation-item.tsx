import { type ConversationView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { Ellipsis, ListChecks } from "lucide-react";
import { memo, useRef, useState } from "react";

import { useConversationActions } from "../chat/use-conversation-actions";
import { useFocusAfterClose } from "../hooks/use-focus-after-close";
import { conversations } from "../state/front-end";
import { minute } from "../state/minute";
import { hrefOf } from "../state/route";
import { Menu } from "../ui/menu";
import { toastProblem } from "../ui/problem-bar";
import { RenameForm } from "../ui/rename-form";
import { useWords } from "../words";
import { untilDay } from "../words/format";
import { useLongPress } from "./use-long-press";

interface Props {
  conversation: ConversationView;
  agent: string;
  /** Whether its turn waits for the user. */
  isWaiting: boolean;
  isOpen: boolean;
  /** Begins to select several. */
  onSelect: (id: string, isRange: boolean) => void;
}

/** A conversation in its row: the link to it, and its menu. */
export const ConversationItem = memo(function ConversationItem({ conversation, agent, isWaiting, isOpen, onSelect }: Props) {
  const words = useWords();
  const [renaming, setRenaming] = useState(false);
  const [change, ...others] = useConversationActions(conversation, () => setRenaming(true));
  const { id, activeTurnId, deletesAt } = conversation;
  const title = conversation.title || words.untitled;
  const now = useStore(minute);
  const link = useRef<HTMLAnchorElement>(null);
  useFocusAfterClose(renaming, () => link.current);
  const rename = (next: string | null) => {
    setRenaming(false);
    if (next === null) return;
    conversations.change(id, { title: next || null }).catch((error: unknown) => toastProblem(words, error));
  };
  const select = () => onSelect(id, false);
  const longPress = useLongPress(select);
  if (renaming) return <RenameForm title={conversation.title ?? ""} onDone={rename} />;
  return (
    <>
      <a
        ref={link}
        href={hrefOf({ name: "conversation", id })}
        aria-current={isOpen ? "page" : undefined}
        title={title}
        onClick={(event) => {
          if (!event.shiftKey) return;
          event.preventDefault();
          select();
        }}
        {...longPress}
      >
        <span className="title" dir="auto">
          {title}
        </span>
        {deletesAt ? (
          <small className="ending">{words.deletesWhen(untilDay(deletesAt, words.locale, now))}</small>
        ) : (
          agent && <small>{agent}</small>
        )}
        {activeTurnId && (
          <span
            className={isWaiting ? "pulse asks" : "pulse"}
            role="img"
            aria-label={isWaiting ? words.waitingForYou : words.running}
          />
        )}
      </a>
      <Menu label={words.actionsFor(title)} groups={[{ items: [...change!.items, { label: words.select, icon: ListChecks, run: select }] }, ...others]}>
        <Ellipsis aria-hidden />
      </Menu>
    </>
  );
});
