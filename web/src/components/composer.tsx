import { ArrowUp, Square } from "lucide-react";
import { useEffect, useRef, useState, type KeyboardEvent } from "react";

import { keepDraft, readDraft } from "../state/drafts";
import { useWords } from "../words";

interface Props {
  draftKey: string;
  placeholder: string;
  /** Characters that a message may have; 0: as many as one likes. */
  limit: number;
  running: boolean;
  stopping?: boolean;
  disabled?: boolean;
  /** A quiet word below. */
  note?: string;
  /** False when the text was not taken: it stays. */
  onSend: (text: string) => Promise<boolean>;
  onStop?: () => void;
}

/** From this share of the limit on it is shown. */
const NEAR = 0.8;

export function Composer({ draftKey, placeholder, limit, running, stopping, disabled, note = "", onSend, onStop }: Props) {
  const words = useWords();
  const [text, setText] = useState(() => readDraft(draftKey));
  const input = useRef<HTMLTextAreaElement>(null);
  useEffect(() => setText(readDraft(draftKey)), [draftKey]);
  useEffect(() => {
    if (matchMedia("(pointer: fine)").matches) input.current?.focus();
  }, [draftKey]);

  const write = (next: string) => {
    setText(next);
    keepDraft(draftKey, next);
  };
  const over = limit ? [...text.trim()].length - limit : 0;
  const ready = text.trim() !== "" && over <= 0 && !running && !disabled;
  const submit = async () => {
    if (!ready) return;
    const sent = text.trim();
    write("");
    if (!(await onSend(sent))) {
      keepDraft(draftKey, sent);
      setText((now) => now || sent);
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // A person who writes Chinese chooses characters with Enter.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void submit();
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <div className="box">
        <textarea
          ref={input}
          id="message"
          aria-label={words.message}
          placeholder={placeholder}
          rows={1}
          dir="auto"
          value={text}
          disabled={disabled}
          aria-invalid={over > 0}
          aria-describedby="limit"
          onChange={(event) => write(event.target.value)}
          onKeyDown={onKeyDown}
        />
        {running && onStop ? (
          <button type="button" className="send" onClick={onStop} disabled={stopping} aria-label={words.stop}>
            <Square aria-hidden />
          </button>
        ) : (
          <button type="submit" className="send" disabled={!ready} aria-label={words.send}>
            <ArrowUp aria-hidden />
          </button>
        )}
      </div>
      <p id="limit" className={over > 0 ? "limit wrong" : "limit"}>
        {limit > 0 && over > 0 ? words.tooLong(over) : limit > 0 && -over < limit * (1 - NEAR) ? words.left(-over) : note}
      </p>
    </form>
  );
}
