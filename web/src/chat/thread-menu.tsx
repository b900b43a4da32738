import { type ConversationView, type Thread } from "@threadkeep/client";
import { Ellipsis, FoldVertical } from "lucide-react";

import { api } from "../api/api";
import { useConversationActions } from "../hooks/use-conversation-actions";
import { toast } from "../state/toasts";
import { Menu } from "../ui/menu";
import { toastProblem } from "../ui/problem-bar";
import { useWords } from "../words";

interface Props {
  thread: Thread;
  conversation: ConversationView;
  running: boolean;
  onRename: () => void;
}

/** What the user can do with the open conversation. */
export function ThreadMenu({ thread, conversation, running, onRename }: Props) {
  const words = useWords();
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
  const compacting = { label: words.compact, icon: FoldVertical, run: () => void compact() };
  return (
    <Menu label={words.moreActions} groups={[first!, { items: running ? [] : [compacting] }, ...rest]}>
      <Ellipsis aria-hidden />
    </Menu>
  );
}
