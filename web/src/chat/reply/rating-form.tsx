import "../../styles/rating.css";

import { type FeedbackBody, type FeedbackView } from "@threadkeep/client";
import { useId, useRef, useState, type FormEvent } from "react";

import { useEscape } from "../../hooks/use-escape";
import { toastProblem } from "../../ui/problem-bar";
import { toast } from "../../ui/toasts";
import { useWords } from "../../words";
import { useFeedbackWords } from "../../words/feedback";

const MOST_CHARACTERS = 4000;

interface Props {
  feedback: FeedbackView;
  onRate: (body: FeedbackBody) => Promise<void>;
  onClose: () => void;
}

/** What was good or bad about a reply, and whether the agent's owner may read the turn. */
export function RatingForm({ feedback, onRate, onClose }: Props) {
  const words = useWords();
  const feedbackWords = useFeedbackWords();
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  const [note, setNote] = useState(feedback.note);
  const [shareText, setShareText] = useState(feedback.shareText);
  /** Back to the pressed thumb: what has the focus disappears. */
  const close = () => {
    form.current?.closest(".reply")?.querySelector<HTMLElement>(".actions [aria-pressed=true]")?.focus();
    onClose();
  };
  const send = async (event: FormEvent) => {
    event.preventDefault();
    try {
      await onRate({ rating: feedback.rating, note: note.trim(), shareText });
      toast(feedbackWords.thanks);
      close();
    } catch (error) {
      toastProblem(words, error);
    }
  };
  useEscape(true, close);
  return (
    <form ref={form} className="rating card" aria-label={feedbackWords.feedback} onSubmit={(event) => void send(event)}>
      <label htmlFor={`${id}-note`}>{feedback.rating === "up" ? feedbackWords.whatWasGood : feedbackWords.whatWasBad}</label>
      <textarea id={`${id}-note`} rows={2} maxLength={MOST_CHARACTERS} value={note} dir="auto" onChange={(event) => setNote(event.target.value)} />
      <label className="share-text">
        <input
          type="checkbox"
          checked={shareText}
          aria-describedby={`${id}-hint`}
          onChange={(event) => setShareText(event.target.checked)}
        />
        {feedbackWords.shareText}
      </label>
      <p className="hint" id={`${id}-hint`}>
        {shareText ? feedbackWords.shareHint : feedbackWords.noShareHint}
      </p>
      <div className="choices">
        <button type="submit" className="primary">
          {feedbackWords.send}
        </button>
        <button type="button" onClick={close}>
          {words.close}
        </button>
      </div>
      <p className="unseen" role="status">
        {feedbackWords.rated}
      </p>
    </form>
  );
}
