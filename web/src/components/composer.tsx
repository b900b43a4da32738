import { ArrowUp, CornerDownRight, Pencil, Square } from "lucide-react";
import { useEffect, useId, useRef, useState, type KeyboardEvent } from "react";

import { keepDraft, readDraft } from "../state/drafts";
import { useWords } from "../words";

interface Props {
  draftKey: string;
  placeholder: string;
  /** Characters that a message may have; 0: as many as one likes. */
  limit: number;
  running: boolean;
  /** Whether what is sent while a turn runs is kept for later. */
  queues?: boolean;
  /** Whether the turn waits for its user: a message ends it. */
  waiting?: boolean;
  stopping?: boolean;
  disabled?: boolean;
  /** A quiet word below. */
  note?: string;
  /** Another version of a message is written here; calling it leaves that message as it is. */
  onCancelEdit?: () => void;
  /** False when the text was not taken: it stays. `steers`: it is for the turn that runs. */
  onSend: (text: string, steers: boolean) => Promise<boolean>;
  onStop?: () => void;
}

const MODIFIER = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";

/** From this share of the limit on it is shown. */
const NEAR = 0.8;

export function Composer({ draftKey, placeholder, limit, running, disabled, note = "", ...more }: Props) {
  const { queues = false, waiting = false, stopping, onCancelEdit, onSend, onStop } = more;
  const words = useWords();
  const [draft, setDraft] = useState({ key: draftKey, text: readDraft(draftKey) });
  if (draft.key !== draftKey) setDraft({ key: draftKey, text: readDraft(draftKey) });
  const { text } = draft;
  const input = useRef<HTMLTextAreaElement>(null);
  const bar = useId();
  const isEditing = onCancelEdit !== undefined;
  useEffect(() => {
    if (!isEditing && !matchMedia("(pointer: fine)").matches) return;
    input.current?.focus();
    input.current?.setSelectionRange(input.current.value.length, input.current.value.length);
  }, [draftKey, isEditing]);

  const write = (next: string) => {
    setDraft({ key: draftKey, text: next });
    keepDraft(draftKey, next);
  };
  const over = limit ? [...text.trim()].length - limit : 0;
  const ready = text.trim() !== "" && over <= 0 && (!running || queues) && !disabled;
  const isQueueing = running && queues && !waiting;
  const submit = async (steers: boolean) => {
    if (!ready) return;
    const sent = text.trim();
    write("");
    if (!(await onSend(sent, steers && isQueueing))) {
      keepDraft(draftKey, sent);
      setDraft((now) => (now.key === draftKey && !now.text ? { ...now, text: sent } : now));
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // A person who writes Chinese chooses characters with Enter, and drops them with Escape.
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Escape" && onCancelEdit) onCancelEdit();
    else if (event.key === "Escape" && running && !stopping) onStop?.();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    void submit(event.ctrlKey || event.metaKey);
  };
  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(false);
      }}
    >
      {isEditing && (
        <div className="editing">
          <Pencil aria-hidden />
          <span id={bar} role="status">
            {words.editing}
          </span>
          <button type="button" className="link" onClick={onCancelEdit}>
            {words.cancel} <kbd aria-hidden>Esc</kbd>
          </button>
        </div>
      )}
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
          aria-describedby={isEditing ? `${bar} limit` : "limit"}
          onChange={(event) => write(event.target.value)}
          onKeyDown={onKeyDown}
        />
        {isQueueing && ready && (
          <button type="button" className="icon" aria-label={words.steer} title={words.steerHint} onClick={() => void submit(true)}>
            <CornerDownRight aria-hidden />
          </button>
        )}
        {(!running || !onStop || (queues && ready)) && (
          <button type="submit" className="send" disabled={!ready} aria-label={isQueueing ? words.addToQueue : words.send}>
            <ArrowUp aria-hidden />
          </button>
        )}
        {running && onStop && (
          <button type="button" className="send stop" onClick={onStop} disabled={stopping} aria-label={words.stop}>
            <Square aria-hidden />
          </button>
        )}
      </div>
      <p id="limit" className={over > 0 ? "limit wrong" : "limit"}>
        {limit > 0 && over > 0 ? (
          words.tooLong(over)
        ) : limit > 0 && -over < limit * (1 - NEAR) ? (
          words.left(-over)
        ) : waiting ? (
          words.waitingHint
        ) : isQueueing ? (
          <span className="keys">{words.queueHint(MODIFIER)}</span>
        ) : (
          note
        )}
      </p>
    </form>
  );
}
