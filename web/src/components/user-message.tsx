import { useState } from "react";

import { type MessageView } from "../api/schema";
import { textOf } from "../turn/fold";
import { useWords } from "../words";

/** What is longer is folded. */
const FOLDED = 2000;

export function UserMessage({ message }: { message: MessageView }) {
  const words = useWords();
  const [open, setOpen] = useState(false);
  const text = textOf(message);
  const isLong = text.length > FOLDED;
  return (
    <article className="said" aria-label={words.youSaid}>
      <div className="bubble" dir="auto">
        {isLong && !open ? `${text.slice(0, FOLDED)}…` : text}
      </div>
      {isLong && (
        <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? words.less : words.more}
        </button>
      )}
    </article>
  );
}
