import { type FeedbackBody, type Message } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { Columns2, Ellipsis, GitFork, Info, Share2, type LucideIcon } from "lucide-react";

import { modelsFor } from "../../state/models";
import { canShare, toShare } from "../../state/sharing";
import { IconButton } from "../../ui/icon-button";
import { Menu } from "../../ui/menu";
import { type MenuItem } from "../../ui/menu-list";
import { useWords } from "../../words";
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

interface ButtonProps extends Omit<Props, "open"> {
  onFork?: () => void;
  onDetails: (turnId: string) => void;
}

/** Fingers need large buttons, and a row of them all is wider than a phone. */
const touched = matchMedia("(pointer: coarse), (hover: none)");

/** The buttons to rate a reply and to go on from it; on a touch screen, the rarer ones are in a menu. Loaded with the first reply. */
export function ReplyButtons({ agentId, message, onOpen, onRate, onFork, onDetails }: ButtonProps) {
  const words = useWords();
  const feedbackWords = useFeedbackWords();
  const offersModels = useStore(modelsFor(agentId)).length > 0;
  const { conversationId, id: messageId, turnId } = message;
  const items: (MenuItem & { icon: LucideIcon })[] = [];
  if (turnId && offersModels) items.push({ icon: Columns2, label: feedbackWords.tryModel, run: () => onOpen("trying") });
  if (canShare) items.push({ icon: Share2, label: feedbackWords.shareHere, run: () => toShare.set({ conversationId, messageId }) });
  if (onFork) items.push({ icon: GitFork, label: words.fork, run: onFork });
  if (turnId) items.push({ icon: Info, label: words.details, run: () => onDetails(turnId) });
  return (
    <>
      <RatingButtons feedback={message.feedback} onRate={onRate} onOpen={(isOpen) => onOpen(isOpen ? "rating" : null)} />
      {touched.matches ? (
        <Menu label={feedbackWords.moreActions} groups={[{ items }]}>
          <Ellipsis aria-hidden />
        </Menu>
      ) : (
        items.map(({ icon, label, run }) => <IconButton key={label} icon={icon} label={label} onClick={run} />)
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
