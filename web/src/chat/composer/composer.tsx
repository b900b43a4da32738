import { type OutgoingFile } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { ArrowUp, CornerDownRight, Pencil, Square } from "lucide-react";
import { useEffect, useId, useRef, type KeyboardEvent, type ReactNode } from "react";

import { useEscape, useEscapeBehind } from "../../hooks/use-escape";
import { attachmentsOf, dropSentFiles, isStuck, outgoingFiles } from "../../state/attachments";
import { dropSent, keepDraft, useDraft } from "../../state/drafts";
import { useWords } from "../../words";
import { AttachButton } from "./attach-button";
import { DropOverlay } from "./drop-overlay";
import { LazyAttachments } from "./lazy-attachments";
import { useAttaching } from "./use-attaching";

interface Props {
  draftKey: string;
  placeholder: string;
  /** The maximum length of a message; 0: no limit. */
  limit: number;
  running: boolean;
  /** Whether messages sent while a turn runs are queued. */
  queues?: boolean;
  /** Whether the turn waits for its user: a message ends it. */
  waiting?: boolean;
  /** Whether it has asked its user something: Escape must not throw that away. */
  asking?: boolean;
  stopping?: boolean;
  disabled?: boolean;
  /** A hint below. */
  note?: string;
  /** What stands before the hint: the choice of a model. */
  children?: ReactNode;
  /** Set while the user edits a message; cancels the edit. */
  onCancelEdit?: () => void;
  /** Takes the message to send it as soon as possible; false if it can't: then the text stays. `steers`: it joins the running turn. */
  onSend: (text: string, steers: boolean, files: readonly OutgoingFile[]) => Promise<boolean>;
  onStop?: () => void;
}

const MODIFIER = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";

/** The count is shown from this share of the limit on. */
const NEAR = 0.8;

export function Composer({ draftKey, placeholder, limit, running, disabled = false, note = "", ...more }: Props) {
  const { queues = false, waiting = false, asking = false, stopping, children, onCancelEdit, onSend, onStop } = more;
  const words = useWords();
  const text = useDraft(draftKey);
  const attachments = useStore(attachmentsOf(draftKey));
  const { add, drop } = useAttaching(draftKey, disabled);
  /** What the outbox is storing, from Enter on: the draft stays that long. */
  const taking = useRef<string | null>(null);
  /** Set if Enter was pressed meanwhile on another text; whether it steers. */
  const isNext = useRef<boolean | null>(null);
  const input = useRef<HTMLTextAreaElement>(null);
  const bar = useId();
  const isEditing = onCancelEdit !== undefined;
  useEffect(() => {
    if (!isEditing && !matchMedia("(pointer: fine)").matches) return;
    if (document.activeElement?.closest("[popover], dialog")) return; // the user is there by now
    input.current?.focus();
    input.current?.setSelectionRange(input.current.value.length, input.current.value.length);
  }, [draftKey, isEditing]);

  const over = limit ? [...text.trim()].length - limit : 0;
  const hasFailed = attachments.some(isStuck);
  const hasFiles = attachments.length > 0;
  const ready = (text.trim() !== "" || hasFiles) && !hasFailed && over <= 0 && (!running || queues) && !disabled;
  const isQueueing = running && queues && !waiting;
  const submit = async (steers: boolean) => {
    if (!ready) return;
    const sent = text.trim();
    if (taking.current !== null) {
      if (taking.current !== sent) isNext.current = steers;
      return;
    }
    taking.current = sent;
    try {
      if (!(await onSend(sent, steers && isQueueing && !hasFiles, outgoingFiles(attachments)))) return;
      dropSent(draftKey, sent);
      dropSentFiles(draftKey, attachments);
    } finally {
      taking.current = null;
      const next = isNext.current;
      isNext.current = null;
      if (next !== null) setTimeout(() => void latestSubmit.current(next)); // once the draft is what remains
    }
  };
  const latestSubmit = useRef(submit);
  useEffect(() => {
    latestSubmit.current = submit;
  });
  useEscape(isEditing, () => onCancelEdit?.());
  useEscapeBehind(running && !stopping && !asking, () => onStop?.());
  const onKeyDown = (event: KeyboardEvent) => {
    // When writing Chinese, Enter chooses characters.
    if (event.nativeEvent.isComposing) return;
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
        <LazyAttachments draftKey={draftKey} attachments={attachments} />
        <AttachButton disabled={disabled} onFiles={(files) => void add(files)} />
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
          onChange={(event) => keepDraft(draftKey, event.target.value)}
          onKeyDown={onKeyDown}
        />
        {isQueueing && ready && !hasFiles && (
          <button type="button" className="icon" aria-label={words.steer} data-tip={words.steerHint} onClick={() => void submit(true)}>
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
      <div className="below">
        {children}
        <p id="limit" className={over > 0 || hasFailed ? "limit wrong" : "limit"}>
        {limit > 0 && over > 0 ? (
          words.tooLong(over)
        ) : limit > 0 && -over < limit * (1 - NEAR) ? (
          words.left(-over)
        ) : hasFailed ? (
          words.removeFailed
        ) : waiting ? (
          words.waitingHint
        ) : isQueueing ? (
          <span className="keys">{hasFiles ? words.queueFilesHint : words.queueHint(MODIFIER)}</span>
        ) : (
          note
        )}
        </p>
      </div>
      {!disabled && <DropOverlay onDrop={drop} />}
    </form>
  );
}
