import { isBusy, type Thread } from "@threadkeep/client";
import { useSelected } from "@threadkeep/react";
import { GitBranch, X } from "lucide-react";

import { rename } from "../state/route";
import { IconButton } from "../ui/icon-button";
import { useWords } from "../words";

interface Props {
  thread: Thread;
  messageId: string;
  seq: number;
}

/** The user opened a message on another branch: nothing changes until they confirm. */
export function BranchBar({ thread, messageId, seq }: Props) {
  const words = useWords();
  const isShown = useSelected(thread.state, (it) => !it.conversation || it.messages.some(({ id }) => id === messageId));
  const busy = useSelected(thread.state, isBusy);
  if (isShown) return null;
  const show = async () => {
    await thread.branches.showBranch(messageId, seq);
    // Don't ask again after the user has chosen another version.
    if (thread.state.get().messages.some(({ id }) => id === messageId)) rename({ name: "conversation", id: thread.id, seq });
  };
  return (
    <div className="problem moved" role="status">
      <GitBranch aria-hidden />
      <span>{words.onOtherBranch}</span>
      <button
        type="button"
        disabled={busy}
        title={busy ? words.switchBusy : undefined}
        onClick={() => void show()}
      >
        {words.showBranch}
      </button>
      <IconButton icon={X} label={words.dismiss} onClick={() => rename({ name: "conversation", id: thread.id })} />
    </div>
  );
}
