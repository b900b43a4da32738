import { GitBranch } from "lucide-react";

import { useSelected } from "../state/store";
import { isBusy } from "../thread/reduce";
import { type Thread } from "../thread/thread";
import { useWords } from "../words";

interface Props {
  thread: Thread;
  messageId: string;
  seq: number;
}

/** One came for a message that is on another branch: nothing changes until one says so. */
export function BranchBar({ thread, messageId, seq }: Props) {
  const words = useWords();
  const isShown = useSelected(thread.state, (it) => !it.conversation || it.messages.some(({ id }) => id === messageId));
  const busy = useSelected(thread.state, isBusy);
  if (isShown) return null;
  return (
    <div className="problem moved" role="status">
      <GitBranch aria-hidden />
      <span>{words.onOtherBranch}</span>
      <button
        type="button"
        disabled={busy}
        title={busy ? words.switchBusy : undefined}
        onClick={() => void thread.showBranch(messageId, seq)}
      >
        {words.showBranch}
      </button>
    </div>
  );
}
