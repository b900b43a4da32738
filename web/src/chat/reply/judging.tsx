import { type FeedbackBody, type Message } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { Columns2, Share2 } from "lucide-react";

import { modelsFor } from "../../state/models";
import { canShare, toShare } from "../../state/sharing";
import { IconButton } from "../../ui/icon-button";
import { useFeedbackWords } from "../../words/feedback";
import { RatingButtons } from "./rating-buttons";
import { RatingForm } from "./rating-form";
import { RerunDrawer } from "./rerun-drawer";

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
      {canShare && (
        <IconButton
          icon={Share2}
          label={feedbackWords.shareHere}
          onClick={() => toShare.set({ conversationId: message.conversationId, messageId: message.id })}
        />
      )}
    </>
  );
}

/** What the buttons open. */
export function JudgingPanels({ open, onOpen, onRate, onRegenerate, ...about }: Props & { onRegenerate?: (model: string) => void }) {
  const close = () => onOpen(null);
  const { feedback } = about.message;
  return (
    <>
      {open === "rating" && feedback && <RatingForm key={feedback.rating} feedback={feedback} onRate={onRate} onClose={close} />}
      {open === "trying" && <RerunDrawer {...about} onRegenerate={onRegenerate} onClose={close} />}
    </>
  );
}
