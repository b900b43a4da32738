import { Ellipsis, FoldVertical } from "lucide-react";

import { send } from "../../packages/client/src/api-client";
import { ROUTES, type ConversationView } from "../../packages/client/src/schema";
import { toast } from "../state/toasts";
import { type Thread } from "../../packages/client/src/thread/thread";
import { useWords } from "../words";
import { Menu } from "../ui/menu";
import { toastProblem } from "../ui/problem-bar";
import { useConversationActions } from "../hooks/use-conversation-actions";

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
      await send("POST", `/api/conversations/${thread.id}/compact`, {});
      await thread.refresh();
      toast(words.compacted);
    } catch (error) {
      toastProblem(words, error);
    }
  };
  const canCompact = !running && ROUTES.has("POST /api/conversations/{conversation_id}/compact");
  const compacting = { label: words.compact, icon: FoldVertical, run: () => void compact() };
  return (
    <Menu label={words.moreActions} groups={[first!, { items: canCompact ? [compacting] : [] }, ...rest]}>
      <Ellipsis aria-hidden />
    </Menu>
  );
}
