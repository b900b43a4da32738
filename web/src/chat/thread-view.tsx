import {
  contentOf,
  filesOf,
  imagesOf,
  isRunning,
  isWaiting,
  openRequests,
  type AgentView,
  type ConversationPatch,
  type Message,
  type OutgoingFile,
  type Thread,
} from "@threadkeep/client";
import { useSelected, useStore } from "@threadkeep/react";
import { useEffect, useState } from "react";

import { useFocusAfterClose } from "../hooks/use-focus-after-close";
import { LazyImageViewer } from "../overlays/lazy-image-viewer";
import { agents, isGuide, needsNoModel } from "../state/agents";
import { attachmentsOf, dropAttachments, keepFiles } from "../state/attachments";
import { draftKeyOf, forgetDraft, keepDraft, readDraft } from "../state/drafts";
import { conversations, outbox } from "../state/front-end";
import { minute } from "../state/minute";
import { chosenModel, modelState, modelsFor } from "../state/models";
import { closeTurn, go, hrefOf, openTurn } from "../state/route";
import { AgentFace } from "../ui/agent-face";
import { ProblemBar, toastProblem } from "../ui/problem-bar";
import { RenameForm } from "../ui/rename-form";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { untilDay } from "../words/format";
import { BranchBar } from "./branch-bar";
import { Composer } from "./composer/composer";
import { ModelPicker } from "./composer/model-picker";
import { LazyCrashStage } from "./guide/lazy-crash-stage";
import { Ideas } from "./ideas";
import { LazyMissingPage } from "./lazy-missing-page";
import { MessageList } from "./message-list";
import { LazyAllowedTools } from "./requests/lazy-request";
import { LazyShareDialog } from "./share/lazy-share-dialog";
import { ThreadMenu } from "./thread-menu";
import { TopBar } from "./top-bar";
import { LazyTurnDrawer } from "./turn/lazy-turn-drawer";

interface Props {
  thread: Thread;
  /** The message that the user opened. */
  seq: number | undefined;
  /** Its id, if it is known to have been on another branch. */
  branchId: string | undefined;
  /** The turn whose details are open. */
  turnId: string | undefined;
  onMenu: () => void;
}

export function ThreadView({ thread, seq, branchId, turnId, onMenu }: Props) {
  const words = useWords();
  // Select only what changes seldom: just the list renders the streaming text.
  const conversation = useSelected(thread.state, (it) => it.conversation);
  const problem = useSelected(thread.state, (it) => it.problem);
  const stopping = useSelected(thread.state, (it) => it.stopping);
  const isLost = useSelected(thread.state, (it) => it.connection === "lost");
  const running = useSelected(thread.state, isRunning);
  const sending = useSelected(thread.state, (it) => it.sending);
  const waiting = useSelected(thread.state, isWaiting);
  const asking = useSelected(thread.state, ({ live }) => live !== null && openRequests(live.message.parts).length > 0);
  const held = useSelected(thread.state, (it) => it.queued.some(({ held }) => held));
  const all = useStore(agents);
  const isDemo = useStore(modelState) === "demonstration";
  const [renaming, setRenaming] = useState(false);
  const [edited, setEdited] = useState<Message | null>(null);
  // Each has its own draft: what was typed before returns when the edit ends.
  useFocusAfterClose(renaming, () => document.querySelector<HTMLElement>(".top-bar .tools [aria-haspopup]"));
  const draftOf = (message: Message | null) => draftKeyOf(thread.id, message?.id);
  // A version that was refused or withdrawn can be edited again.
  useEffect(
    () =>
      outbox.on(({ type, entry }) => {
        if ((type !== "refused" && type !== "withdrawn") || entry.kind !== "message" || entry.conversationId !== thread.id) return;
        const before = entry.edited && messageOf(thread, entry.edited.id);
        if (before) setEdited(before);
      }),
    [thread],
  );
  const agent = all.find((it) => it.id === conversation?.agentId);
  const listed = conversations.state.get().items.find((it) => it.id === thread.id);
  // While it loads there is no title, unless that takes until the server is back.
  const title = conversation ? conversation.title || words.untitled : isLost ? (listed?.title ?? words.conversation) : "";
  const now = useStore(minute);
  const isArchived = conversation?.status === "archived";
  // The list hears of messages and pins, wherever they come from.
  const deletesAt = (useSelected(conversations.state, (list) => list.items.find((it) => it.id === thread.id)) ?? conversation)?.deletesAt;

  const edit = (message: Message) => {
    const draftKey = draftOf(message);
    if (!readDraft(draftKey) && !attachmentsOf(draftKey).get().length) {
      keepDraft(draftKey, contentOf(message.parts));
      keepFiles(draftKey, filesOf(message.parts));
    }
    setEdited(message);
  };
  const endEdit = () => {
    if (edited) {
      forgetDraft(draftOf(edited));
      dropAttachments(draftOf(edited));
    }
    setEdited(null);
  };
  const post = async (text: string, steers: boolean, files: readonly OutgoingFile[]) => {
    const sent = await thread.sending.send(text, { edited, steers, files, model: chosenModel(thread.id, modelsFor(agent?.id).get()) });
    if (sent) setEdited(null);
    return sent;
  };
  const sendIdea = (idea: string) => {
    document.getElementById("main")?.focus(); // the button disappears
    void thread.sending.send(idea);
  };
  const change = (patch: ConversationPatch) => {
    thread.change(patch).catch((error: unknown) => toastProblem(words, error));
  };
  const rename = (next: string | null) => {
    setRenaming(false);
    if (next !== null) change({ title: next || null });
  };
  const fork = async (message: Message) => {
    try {
      const made = await thread.branches.fork(message.id);
      void conversations.refresh();
      go({ name: "conversation", id: made.id });
      toast(words.forked, { label: words.back, run: () => go({ name: "conversation", id: thread.id }) });
    } catch (error) {
      toastProblem(words, error);
    }
  };

  if (!conversation && problem?.code === "CONVERSATION_NOT_FOUND") return <LazyMissingPage what="conversation" conversationId={thread.id} onMenu={onMenu} />;
  if (!conversation && problem)
    return (
      <div className="thread">
        <TopBar title={words.conversation} onMenu={onMenu} />
        <ProblemBar problem={problem} onDismiss={() => go({ name: "new", agentId: null })} />
      </div>
    );
  return (
    <div className="thread">
      <TopBar
        title={title}
        subtitle={agent && <AgentLink agent={agent} />}
        renaming={renaming && <RenameForm title={conversation?.title ?? ""} onDone={rename} />}
        onMenu={onMenu}
      >
        {conversation && (
          <ThreadMenu thread={thread} conversation={conversation} running={running} onRename={() => setRenaming(true)} />
        )}
      </TopBar>
      {isArchived && (
        <p className="banner quiet">
          {words.isArchived}{" "}
          <button type="button" className="link" onClick={() => change({ status: "active" })}>
            {words.unarchive}
          </button>
        </p>
      )}
      {conversation && deletesAt && !conversation.pinned && !running && (
        <p className="banner quiet">
          {words.deletesUnused(untilDay(deletesAt, words.locale, now))}{" "}
          <button type="button" className="link" onClick={() => change({ pinned: true })}>
            {words.pinToKeep}
          </button>
        </p>
      )}
      {isLost && (
        <p className="banner lost" role="status" data-running={running || undefined}>
          {words.connectionLost}
        </p>
      )}
      {isGuide(agent) && <LazyCrashStage thread={thread} />}
      <MessageList
        thread={thread}
        seq={seq}
        editedId={edited?.id}
        onEdit={edit}
        onFork={agent?.settings?.conversationMode === "single" ? undefined : (message) => void fork(message)}
        onDetails={openTurn}
      />
      {branchId !== undefined && seq !== undefined && <BranchBar thread={thread} messageId={branchId} seq={seq} />}
      {problem && (
        <ProblemBar problem={problem} onDismiss={() => thread.dismiss()} onShowPath={() => void thread.branches.showPath()} />
      )}
      {isGuide(agent) && !running && !sending && !edited && (
        <Ideas ideas={words.guideIdeas} onIdea={sendIdea} />
      )}
      <Composer
        draftKey={draftOf(edited)}
        placeholder={words.placeholder(agent?.name ?? "")}
        limit={agent?.settings?.maxMessageChars ?? 0}
        running={running}
        stopping={stopping}
        disabled={!conversation}
        queues={!sending && !edited}
        waiting={waiting}
        asking={asking}
        note={held ? words.heldHint : isDemo && !needsNoModel(agent) ? words.demonstrationShort : ""}
        onCancelEdit={edited ? endEdit : undefined}
        onSend={post}
        onStop={() => void thread.sending.stop()}
      >
        <ModelPicker agentId={agent?.id} draftKey={thread.id} />
      </Composer>
      <p className="unseen" role="status">
        {waiting ? words.waitingForYou : running && !sending ? words.running : ""}
      </p>
      <LazyImageViewer images={() => imagesOf(thread.state.get().messages)} />
      <LazyAllowedTools conversationId={thread.id} agent={agent} />
      <LazyShareDialog />
      <LazyTurnDrawer conversationId={thread.id} turnId={turnId} onClose={closeTurn} />
    </div>
  );
}

/** A message of the path, also while another version of it is being sent. */
function messageOf(thread: Thread, id: string): Message | undefined {
  const { messages, shownBefore } = thread.state.get();
  return (shownBefore?.messages ?? messages).find((it) => it.id === id);
}

/** The agent's icon and name, which lead to its settings; the Guide has none. */
function AgentLink({ agent }: { agent: AgentView }) {
  const words = useWords();
  const name = (
    <>
      <AgentFace agent={agent} /> {agent.name}
    </>
  );
  if (isGuide(agent)) return name;
  return (
    <a href={hrefOf({ name: "agent", id: agent.id })} title={words.agentSettings}>
      {name}
    </a>
  );
}
