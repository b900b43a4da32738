import { type FeedbackBody, type FeedbackView } from "@threadkeep/client";
import { ThumbsDown, ThumbsUp } from "lucide-react";

import { IconButton } from "../../ui/icon-button";
import { toastProblem } from "../../ui/problem-bar";
import { useWords } from "../../words";
import { useFeedbackWords } from "../../words/feedback";

interface Props {
  feedback: FeedbackView | undefined;
  onRate: (body: FeedbackBody) => Promise<void>;
  /** Whether to ask for a note now. */
  onOpen: (isOpen: boolean) => void;
}

/** Rates a reply at once; a second press takes the rating back. A note can follow. */
export function RatingButtons({ feedback, onRate, onOpen }: Props) {
  const words = useWords();
  const feedbackWords = useFeedbackWords();
  const rate = (rating: FeedbackView["rating"]) => {
    const isTakenBack = feedback?.rating === rating;
    onOpen(!isTakenBack);
    onRate(isTakenBack ? { rating: null } : { ...feedback, rating }).catch((error: unknown) => {
      onOpen(false);
      toastProblem(words, error);
    });
  };
  return (
    <>
      <IconButton icon={ThumbsUp} label={feedbackWords.goodAnswer} pressed={feedback?.rating === "up"} onClick={() => rate("up")} />
      <IconButton icon={ThumbsDown} label={feedbackWords.badAnswer} pressed={feedback?.rating === "down"} onClick={() => rate("down")} />
    </>
  );
}
