import { useState } from "react";

import { contentOf, type Message } from "../turn/parts";
import { useWords } from "../words";

/** What is longer is folded. */
const FOLDED = 2000;

export function UserMessage({ message }: { message: Message }) {
  const words = useWords();
  const [open, setOpen] = useState(false);
  const text = contentOf(message.parts);
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
