import { useEffect, useMemo, useState } from "react";

import { send } from "../api/client";
import { type AgentView, type ConversationView } from "../api/schema";
import { agents, refreshAgents } from "../state/agents";
import { keepFiles } from "../state/attachments";
import { conversations } from "../state/conversations";
import { returnDraft } from "../state/drafts";
import { go, type Route } from "../state/route";
import { useSelected, useStore } from "../state/store";
import { Thread, problemOf } from "../thread/thread";
import { type Problem } from "../thread/reduce";
import { type KeptFile } from "../turn/files";
import { useWords } from "../words";
import { Composer } from "./composer";
import { MissingPlace } from "./missing-place";
import { ProblemBar } from "./problem-bar";
import { ThreadView } from "./thread-view";
import { TopBar } from "./top-bar";
import { ViewerPlace } from "./viewer-place";
import { Welcome } from "./welcome";

type At = Extract<Route, { name: "new" | "conversation" }>;

/** A conversation, or a new one. */
export function Talk({ at, onMenu }: { at: At; onMenu: () => void }) {
  // The thread that was just started is the next one to open.
  const [begun, setBegun] = useState<Thread | null>(null);
  if (at.name === "conversation")
    return <OpenThread key={at.id} at={at} begun={begun?.id === at.id ? begun : null} onMenu={onMenu} />;
  return <NewThread agentId={at.agentId} onBegun={setBegun} onMenu={onMenu} />;
}

interface OpenProps {
  at: Extract<Route, { name: "conversation" }>;
  begun: Thread | null;
  onMenu: () => void;
}

function OpenThread({ at: { id, seq, branchId, turnId }, begun, onMenu }: OpenProps) {
  const thread = useMemo(() => begun ?? new Thread(id), [id, begun]);
  const [joined, setJoined] = useState(false);
  useEffect(() => {
    void thread.join().then(() => setJoined(true));
    return () => thread.leave();
  }, [thread]);
  /** Where the opened message was searched for. */
  const [lookedAt, setLookedAt] = useState<number | undefined>();
  useEffect(() => {
    if (joined && seq !== undefined) void thread.showAt(seq).then(() => setLookedAt(seq));
  }, [thread, joined, seq]);
  // Pass titles set by the model or elsewhere on to the list.
  const listed = useSelected(conversations, (list) => list.items.find((it) => it.id === id));
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

/** The requested agent, even if it isn't in the list yet; never another one. */
function chosenAgent(all: readonly AgentView[], id: string | null): AgentView | undefined {
  return id === null ? (all.find((it) => it.isDefault) ?? all[0]) : all.find((it) => it.id === id);
}

const noImages = () => [];

interface NewProps {
  agentId: string | null;
  onBegun: (thread: Thread) => void;
  onMenu: () => void;
}

function NewThread({ agentId, onBegun, onMenu }: NewProps) {
  const words = useWords();
  const all = useStore(agents);
  const agent = chosenAgent(all, agentId);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const isMissing = agentId !== null && !agent;
  /** The agent that the server doesn't show us, either. */
  const [unknownId, setUnknownId] = useState<string | null>(null);
  useEffect(() => {
    if (!isMissing) return;
    refreshAgents() // created elsewhere since the list was loaded
      .then(() => setUnknownId(agentId))
      .catch(() => {});
  }, [isMissing, agentId]);
  const begin = async (content: string, files: readonly KeptFile[] = []): Promise<boolean> => {
    setBusy(true);
    try {
      // A user who is quicker than the list of agents waits for it once.
      if (agentId === null && !agents.get().length) await refreshAgents();
      const chosen = agentId ?? chosenAgent(agents.get(), null)?.id;
      if (!chosen) return false;
      const made = await send<ConversationView>("POST", `/api/agents/${chosen}/conversations`, {});
      const thread = new Thread(made.id);
      onBegun(thread);
      const sent = thread.begin(made, content, files);
      go({ name: "conversation", id: made.id });
      if (!(await sent)) {
        // The user is already there, and so is their text.
        returnDraft(made.id, content);
        keepFiles(made.id, files);
      }
      return true;
    } catch (error) {
      setProblem(problemOf(error));
      return false;
    } finally {
      setBusy(false);
    }
  };
  if (isMissing && unknownId === agentId) return <MissingPlace what="agent" onMenu={onMenu} />;
  return (
    <div className="thread">
      <TopBar onMenu={onMenu} title="" />
      <Welcome agent={agent} onIdea={(idea) => void begin(idea)} />
      {problem && <ProblemBar problem={problem} onDismiss={() => setProblem(null)} />}
      <Composer
        // Not the loaded agent: what is typed before the list of agents has loaded must stay.
        draftKey={`new.${agentId ?? ""}`}
        placeholder={words.placeholder(agent?.name ?? "")}
        limit={agent?.settings?.maxMessageChars ?? 0}
        running={busy}
        onSend={(text, _, files) => begin(text, files)}
      />
      <ViewerPlace images={noImages} />
    </div>
  );
}
