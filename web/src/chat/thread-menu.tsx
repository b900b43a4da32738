import { type ConversationView, type Thread } from "@threadkeep/client";
import { useSelected } from "@threadkeep/react";
import { Ellipsis, FoldVertical, Info, Share2, ShieldCheck } from "lucide-react";

import { api } from "../api/api";
import { allowedToolsOf } from "../state/allowed-tools";
import { openTurn } from "../state/route";
import { canShare, toShare } from "../state/sharing";
import { IconButton } from "../ui/icon-button";
import { Menu } from "../ui/menu";
import { toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { useConversationActions } from "./use-conversation-actions";

interface Props {
  thread: Thread;
  conversation: ConversationView;
  running: boolean;
  onRename: () => void;
}

/** What the user can do with the open conversation. */
export function ThreadMenu({ thread, conversation, running, onRename }: Props) {
  const words = useWords();
  const hasMessages = useSelected(thread.state, ({ messages }) => messages.length > 0);
  const [first, ...rest] = useConversationActions(conversation, onRename, (_, patch) => thread.change(patch));
  const compact = async () => {
    try {
      await api.send("POST", `/api/conversations/${thread.id}/compact`, {});
      await thread.reading.refresh();
      toast(words.compacted);
    } catch (error) {
      toastProblem(words, error);
    }
  };
  const permitting = { label: words.toolPermissions, icon: ShieldCheck, run: () => allowedToolsOf.set(thread.id) };
  const compacting = { label: words.compact, icon: FoldVertical, run: () => void compact() };
  // When it has ended, its reply has a button for them.
  const looking = { label: words.details, icon: Info, run: () => openTurn(thread.state.get().live?.message.turnId ?? "") };
  return (
    <>
      {canShare && hasMessages && (
        <IconButton
          icon={Share2}
          label={words.share}
          unavailable={running ? words.shareBusy : undefined}
          onClick={() => toShare.set({ conversationId: thread.id })}
        />
      )}
      <Menu label={words.moreActions} groups={[first!, { items: [permitting, running ? looking : compacting] }, ...rest]}>
        <Ellipsis aria-hidden />
      </Menu>
    </>
  );
}
