import { Check, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { useEscape } from "../hooks/use-escape";
import { useWords } from "../words";
import { IconButton } from "./icon-button";

interface Props {
  title: string;
  /** Null if nothing changes. */
  onDone: (title: string | null) => void;
}

/** The title as a field: Save, Enter or leaving it saves, Cancel or Escape does not. */
export function RenameForm({ title, onDone }: Props) {
  const words = useWords();
  const [text, setText] = useState(title);
  // The field also loses the focus when it is removed.
  const isDone = useRef(false);
  const end = (next: string | null) => {
    if (isDone.current) return;
    isDone.current = true;
    onDone(next);
  };
  useEscape(true, () => end(null));
  const save = () => end(text.trim() === title ? null : text.trim());
  // Its row may move to another group of the list while the user types.
  const leave = useRef(save);
  useEffect(() => {
    leave.current = () => text !== title && save();
  });
  useEffect(() => () => leave.current(), []);
  return (
    <form
      className="rename"
      onSubmit={(event) => {
        event.preventDefault();
        save();
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
        onBlur={({ relatedTarget, target }) => !target.form?.contains(relatedTarget) && save()}
      />
      {/* The field keeps the focus, so that pressing Cancel is not leaving it. */}
      <span className="ends" onPointerDown={(event) => event.preventDefault()}>
        <IconButton icon={Check} label={words.save} onClick={save} />
        <IconButton icon={X} label={words.cancel} onClick={() => end(null)} />
      </span>
    </form>
  );
}
