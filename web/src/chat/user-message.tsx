import { contentOf, filesOf, type Message, type OutboxItem } from "@threadkeep/client";
import { Pencil } from "lucide-react";
import { useState, type ReactNode } from "react";

import { CopyButton } from "../ui/copy-button";
import { IconButton } from "../ui/icon-button";
import { useWords } from "../words";
import { MessageFiles } from "./files/message-files";
import { MessageTime } from "./message-time";
import { UnsentStatus } from "./unsent-status";

/** What is longer is folded. */
const FOLDED = 2000;

interface Props {
  message: Message;
  /** Whether a turn runs here. */
  busy: boolean;
  /** Set as long as the server doesn't have it. */
  unsent?: OutboxItem;
  onEdit: () => void;
  /** The choice of versions. */
  children?: ReactNode;
}

export function UserMessage({ message, busy, unsent, onEdit, children }: Props) {
  const words = useWords();
  const [open, setOpen] = useState(false);
  const text = contentOf(message.parts);
  const isLong = text.length > FOLDED;
  return (
    <article className="user-message" aria-label={words.youSaid}>
      <MessageFiles files={filesOf(message.parts)} />
      {text && (
        <div className="bubble" dir="auto">
          {isLong && !open ? `${text.slice(0, FOLDED)}…` : text}
        </div>
      )}
      {isLong && (
        <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? words.less : words.more}
        </button>
      )}
      {unsent ? (
        <UnsentStatus item={unsent} />
      ) : (
        <div className="actions">
          <MessageTime at={message.createdAt} />
          {text && <CopyButton text={text} />}
          <IconButton icon={Pencil} label={words.edit} unavailable={busy ? words.editBusy : undefined} onClick={onEdit} />
          {children}
        </div>
      )}
    </article>
  );
}
