import { useState } from "react";

import { useWords } from "../words";

interface Props {
  title: string;
  /** Null when nothing is to change. */
  onDone: (title: string | null) => void;
}

export function RenameForm({ title, onDone }: Props) {
  const words = useWords();
  const [text, setText] = useState(title);
  return (
    <form
      className="rename"
      onSubmit={(event) => {
        event.preventDefault();
        onDone(text.trim() === title ? null : text.trim());
      }}
    >
      <input
        aria-label={words.title}
        value={text}
        maxLength={200}
        dir="auto"
        autoFocus
        onFocus={(event) => event.target.select()}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && onDone(null)}
      />
      <button type="submit" className="primary">
        {words.save}
      </button>
      <button type="button" onClick={() => onDone(null)}>
        {words.cancel}
      </button>
    </form>
  );
}
