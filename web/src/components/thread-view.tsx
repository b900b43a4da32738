import { Archive, ArchiveRestore, Pencil, Trash2 } from "lucide-react";
import { useState } from "react";

import { agents } from "../state/agents";
import { deleteConversation, restoreConversation } from "../state/conversations";
import { go } from "../state/route";
import { useSelected, useStore } from "../state/store";
import { toast } from "../state/toasts";
import { isRunning } from "../thread/reduce";
import { type Thread } from "../thread/thread";
import { useWords } from "../words";
import { Composer } from "./composer";
import { IconButton } from "./icon-button";
import { MessageList } from "./message-list";
import { ProblemBar } from "./problem-bar";
import { RenameForm } from "./rename-form";
import { ThreadMenu } from "./thread-menu";
import { TopBar } from "./top-bar";
import { TurnDrawer } from "./turn-drawer";
import { isDemonstration } from "./welcome";

interface Props {
  thread: Thread;
  /** The message that one came for. */
  seq: number | undefined;
  onMenu: () => void;
}

export function ThreadView({ thread, seq, onMenu }: Props) {
  const words = useWords();
  // Only what changes seldom: the text that streams in is the list's alone.
  const conversation = useSelected(thread.state, (it) => it.conversation);
  const problem = useSelected(thread.state, (it) => it.problem);
  const stopping = useSelected(thread.state, (it) => it.stopping);
  const isLost = useSelected(thread.state, (it) => it.connection === "lost");
  const running = useSelected(thread.state, isRunning);
  const all = useStore(agents);
  const [renaming, setRenaming] = useState(false);
  const [turnId, setTurnId] = useState<string | null>(null);
  const agent = all.find((it) => it.id === conversation?.agentId);
  const title = conversation?.title || (conversation ? words.untitled : "");
  const isArchived = conversation?.status === "archived";

  const remove = async () => {
    await deleteConversation(thread.id);
    go({ name: "new", agentId: null });
    toast(words.deleted(title), {
      label: words.undo,
      run: () => void restoreConversation(thread.id).then(() => go({ name: "conversation", id: thread.id })),
    });
  };

  if (!conversation && problem)
    return (
      <div className="thread">
        <TopBar title={words.conversation} onMenu={onMenu} />
        <ProblemBar problem={problem} onDismiss={() => go({ name: "new", agentId: null })} />
      </div>
    );
  return (
    <div className="thread">
      <TopBar title={renaming ? "" : title} subtitle={renaming ? "" : agent?.name} onMenu={onMenu}>
        {conversation && !renaming && (
          <>
            <IconButton icon={Pencil} label={words.rename} onClick={() => setRenaming(true)} />
            <IconButton
              icon={isArchived ? ArchiveRestore : Archive}
              label={isArchived ? words.unarchive : words.archive}
              onClick={() => void thread.change({ status: isArchived ? "active" : "archived" })}
            />
            <IconButton icon={Trash2} label={words.delete} onClick={() => void remove()} />
            <ThreadMenu thread={thread} title={title} running={running} />
          </>
        )}
        {renaming && (
          <RenameForm
            title={conversation?.title ?? ""}
            onDone={(next) => {
              setRenaming(false);
              if (next !== null) void thread.change({ title: next || null });
            }}
          />
        )}
      </TopBar>
      {isLost && (
        <p className="banner" role="status">
          {words.connectionLost}
        </p>
      )}
      <MessageList thread={thread} seq={seq} onDetails={setTurnId} />
      {problem && <ProblemBar problem={problem} onDismiss={() => thread.dismiss()} />}
      <Composer
        draftKey={thread.id}
        placeholder={words.placeholder(agent?.name ?? "")}
        limit={agent?.settings?.maxMessageChars ?? 0}
        running={running}
        stopping={stopping}
        disabled={!conversation}
        note={isDemonstration ? words.demonstrationShort : ""}
        onSend={(text) => thread.send(text)}
        onStop={() => void thread.stop()}
      />
      {turnId && <TurnDrawer turnId={turnId} onClose={() => setTurnId(null)} />}
    </div>
  );
}
