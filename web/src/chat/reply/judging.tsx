import { type FeedbackBody, type Message } from "@threadkeep/client";
import { Columns2 } from "lucide-react";

import { useStore } from "../../hooks/use-store";
import { modelsFor } from "../../state/models";
import { IconButton } from "../../ui/icon-button";
import { useFeedbackWords } from "../../words/feedback";
import { LazyRatingForm } from "./lazy-rating-form";
import { LazyRerunDrawer } from "./lazy-rerun-drawer";
import { RatingButtons } from "./rating-buttons";

/** What is open below a reply. */
export type Judged = "rating" | "trying" | null;

interface Props {
  agentId: string | undefined;
  message: Message;
  open: Judged;
  onOpen: (open: Judged) => void;
  onRate: (body: FeedbackBody) => Promise<void>;
}

/** The buttons to rate a reply, and to try another model where the agent offers several. Loaded with the first reply. */
export function JudgingButtons({ agentId, message, onOpen, onRate }: Omit<Props, "open">) {
  const feedbackWords = useFeedbackWords();
  const offersModels = useStore(modelsFor(agentId)).length > 0;
  return (
    <>
      <RatingButtons feedback={message.feedback} onRate={onRate} onOpen={(isOpen) => onOpen(isOpen ? "rating" : null)} />
      {message.turnId && offersModels && (
        <IconButton icon={Columns2} label={feedbackWords.tryModel} onClick={() => onOpen("trying")} />
      )}
    </>
  );
}

/** What the buttons open. */
export function JudgingPanels({ open, onOpen, onRate, onRegenerate, ...about }: Props & { onRegenerate?: (model: string) => void }) {
  const close = () => onOpen(null);
  return (
    <>
      <LazyRatingForm feedback={open === "rating" ? about.message.feedback : undefined} onRate={onRate} onClose={close} />
      <LazyRerunDrawer {...about} isOpen={open === "trying"} onRegenerate={onRegenerate} onClose={close} />
    </>
  );
}
