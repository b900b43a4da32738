import { problemOf, type AgentView, type Thread, type OutgoingFile, type Problem } from "@threadkeep/client";
import { useSelected, useStore, useThread } from "@threadkeep/react";
import { useEffect, useMemo, useRef, useState, type ReactNode } from "react";

import { LazyImageViewer } from "../overlays/lazy-image-viewer";
import { agents, chosenAgent, refreshAgents } from "../state/agents";
import { newDraftKey, readDraft } from "../state/drafts";
import { conversations, openThread, outbox } from "../state/front-end";
import { chosenModel, modelsFor, moveChoice } from "../state/models";
import { go, type Route } from "../state/route";
import { ProblemBar } from "../ui/problem-bar";
import { useWords } from "../words";
import { Composer } from "./composer/composer";
import { ModelPicker } from "./composer/model-picker";
import { AgentPicker } from "./home/agent-picker";
import { Welcome } from "./home/welcome";
import { LazyMissingPage } from "./lazy-missing-page";
import { ThreadView } from "./thread-view";
import { TopBar } from "./top-bar";
import { UnsentMessage } from "./unsent-message";

type At = Extract<Route, { name: "new" | "conversation" }>;

interface Props {
  at: At;
  /** What a new conversation’s page offers besides. */
  offer: ReactNode;
  onMenu: () => void;
}

/** A conversation, or a new one. */
export function ConversationPage({ at, offer, onMenu }: Props) {
  // The thread that was just started is the next one to open.
  const [begun, setBegun] = useState<Thread | null>(null);
  if (at.name === "conversation")
    return <OpenThread key={at.id} at={at} begun={begun?.id === at.id ? begun : null} onMenu={onMenu} />;
  return <NewThread agentId={at.agentId} offer={offer} onBegun={setBegun} onMenu={onMenu} />;
}

interface OpenProps {
  at: Extract<Route, { name: "conversation" }>;
  begun: Thread | null;
  onMenu: () => void;
}

function OpenThread({ at: { id, seq, branchId, turnId }, begun, onMenu }: OpenProps) {
  const thread = useMemo(() => begun ?? openThread(id), [id, begun]);
  const joined = useThread(thread);
  /** Where the opened message was searched for. */
  const [lookedAt, setLookedAt] = useState<number | undefined>();
  useEffect(() => {
    if (joined && seq !== undefined) void thread.reading.showAt(seq).then(() => setLookedAt(seq));
  }, [thread, joined, seq]);
  // Pass titles set by the model or elsewhere on to the list.
  const listed = useSelected(conversations.state, (list) => list.items.find((it) => it.id === id));
  useEffect(() => {
    if (listed) thread.retitle(listed.title);
  }, [thread, listed]);
  return (
    <ThreadView
      thread={thread}
      seq={seq}
      branchId={seq === lookedAt ? branchId : undefined}
      turnId={turnId}
      onMenu={onMenu}
    />
  );
}

const noImages = () => [];

interface NewProps {
  agentId: string | null;
  offer: ReactNode;
  onBegun: (thread: Thread) => void;
  onMenu: () => void;
}

function NewThread({ agentId, offer, onBegun, onMenu }: NewProps) {
  const words = useWords();
  const all = useStore(agents);
  const agent = chosenAgent(all, agentId);
  const [problem, setProblem] = useState<Problem | null>(null);
  // Not the loaded agent: what is typed before the list of agents has loaded must stay.
  const draftKey = newDraftKey(agentId);
  /** The message that was written here, perhaps to another agent. */
  const begunId = useRef<string | null>(null);
  const [sentId, setSentId] = useState<string | null>(null);
  const first = useStore(outbox.items).find(
    ({ entry }) => entry.kind === "message" && entry.conversationId === null && (entry.agentId === agentId || entry.id === sentId),
  );
  useEffect(
    () =>
      outbox.on((event) => {
        const { type, entry } = event;
        if (entry.kind !== "message" || (entry.agentId !== agentId && entry.id !== begunId.current)) return;
        if (type === "refused" && entry.conversationId === null) setProblem(problemOf(event.error));
        // One of an earlier visit leads there, too, unless the user is writing something else by now.
        if (type !== "created" || (entry.id !== begunId.current && readDraft(draftKey))) return;
        const thread = openThread(event.conversation.id);
        thread.begin(event.conversation, event.entry);
        moveChoice(draftKey, thread.id);
        onBegun(thread);
        go({ name: "conversation", id: thread.id });
      }),
    [agentId, draftKey, onBegun],
  );
  const isMissing = agentId !== null && !agent;
  /** The agent that the server doesn't show us, either. */
  const [unknownId, setUnknownId] = useState<string | null>(null);
  useEffect(() => {
    if (!isMissing) return;
    refreshAgents() // created elsewhere since the list was loaded
      .then(() => setUnknownId(agentId))
      .catch(() => {});
  }, [isMissing, agentId]);
  const begin = async (content: string, files: readonly OutgoingFile[] = [], other?: AgentView): Promise<boolean> => {
    if (first) return false;
    setProblem(null);
    const model = other ? undefined : chosenModel(draftKey, modelsFor(agent?.id).get());
    const to = other ? other.id : agentId;
    const entry = outbox.prepare({ kind: "message", conversationId: null, agentId: to, content, files, ...(model && { model }) });
    begunId.current = entry.id;
    setSentId(entry.id);
    await outbox.add(entry);
    return true;
  };
  if (isMissing && unknownId === agentId) return <LazyMissingPage what="agent" onMenu={onMenu} />;
  const composer = (
    <>
      {problem && <ProblemBar problem={problem} onDismiss={() => setProblem(null)} />}
      <Composer
        draftKey={draftKey}
        placeholder={words.placeholder(agent?.name ?? "")}
        limit={agent?.settings?.maxMessageChars ?? 0}
        running={first !== undefined}
        onSend={(text, _, files) => begin(text, files)}
      >
        <AgentPicker agent={agent} />
        <ModelPicker agentId={agent?.id} draftKey={draftKey} />
      </Composer>
    </>
  );
  return (
    <div className="thread">
      <TopBar onMenu={onMenu} title="" />
      {offer}
      {first ? (
        <>
          <div className="scroller">
            <div className="messages">
              <UnsentMessage item={first} />
            </div>
          </div>
          {composer}
        </>
      ) : (
        <Welcome agent={agent} onStart={(message, other) => void begin(message, [], other)}>
          {composer}
        </Welcome>
      )}
      <LazyImageViewer images={noImages} />
    </div>
  );
}
