import { type FeedbackBody, type FeedbackView } from "@threadkeep/client";

import { useChunk } from "../../hooks/use-chunk";

interface Props {
  /** The rating that a note can be added to; none while nothing is asked. */
  feedback: FeedbackView | undefined;
  onRate: (body: FeedbackBody) => Promise<void>;
  onClose: () => void;
}

const loadForm = () => import("./rating-form");

/** Asks for a note to a rating, with code that is loaded when the user first rates a reply. */
export function LazyRatingForm({ feedback, onRate, onClose }: Props) {
  const form = useChunk(loadForm, feedback !== undefined, onClose);
  return feedback && form && <form.RatingForm key={feedback.rating} feedback={feedback} onRate={onRate} onClose={onClose} />;
}
