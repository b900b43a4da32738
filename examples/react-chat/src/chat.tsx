import "./chat.css";

import { FrontEnd, contentOf, type AgentView, type Message, type TurnRequest } from "@threadkeep/client";
import { browserPlatform } from "@threadkeep/client/browser";
import { ThreadkeepProvider, useConversation, useConversations } from "@threadkeep/react";
import { StrictMode, useEffect, useRef, useState, type FormEvent } from "react";
import { createRoot } from "react-dom/client";

const frontEnd = new FrontEnd({ baseUrl: location.origin, platform: browserPlatform() });

/** The conversation in the address, so that a reload shows it again. */
function useOpenId() {
  const read = () => location.hash.slice(1) || null;
  const [id, setId] = useState(read);
  useEffect(() => {
    const look = () => setId(read());
    window.addEventListener("hashchange", look);
    return () => window.removeEventListener("hashchange", look);
  }, []);
  return id;
}

function App() {
  const id = useOpenId();
  const [agents, setAgents] = useState<AgentView[]>([]);
  const [agentId, setAgentId] = useState<string>();
  useEffect(() => void frontEnd.api.get<{ items: AgentView[] }>("/api/agents").then(({ items }) => setAgents(items)), []);
  const { conversations } = useConversations();
  return (
    <>
      <nav aria-label="Conversations">
        <h1>Chat</h1>
        <a href="#" className="new">New conversation</a>
        {conversations.map(({ id: each, title, activeTurnId }) => (
          <a key={each} href={`#${each}`} aria-current={each === id ? "page" : undefined}>
            {title ?? "New conversation"} {activeTurnId && <span className="dot" title="Answering" />}
          </a>
        ))}
      </nav>
      <main>
        <Conversation id={id} agentId={agentId} />
        {id === null && (
          <select aria-label="Agent" value={agentId} onChange={(event) => setAgentId(event.target.value || undefined)}>
            {agents.map((it) => <option key={it.id} value={it.isDefault ? "" : it.id}>{it.name}</option>)}
          </select>
        )}
      </main>
    </>
  );
}

function Conversation({ id, agentId }: { id: string | null; agentId: string | undefined }) {
  const [draft, setDraft] = useState("");
  const [edited, setEdited] = useState<Message>();
  const chat = useConversation(id, {
    agentId,
    onCreated: (created) => (location.hash = created),
    onReturned: ({ content }) => setDraft(content),
  });
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => void end.current?.scrollIntoView(), [chat.messages, chat.requests.length]);
  useEffect(() => setEdited(undefined), [id]);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!draft.trim() || !(await chat.send(draft, { edited }))) return;
    setDraft("");
    setEdited(undefined);
  };
  const edit = (message: Message) => {
    setEdited(message);
    setDraft(contentOf(message.parts));
  };
  return (
    <>
      <div className="messages" role="log" aria-label="Messages">
        {chat.messages.length === 0 && !chat.isLoading && <p className="empty">What would you like to talk about?</p>}
        {chat.messages.map((message) => (
          <article key={message.id} className={message.role} aria-label={message.role === "user" ? "You" : "Reply"}>
            <p>{contentOf(message.parts) || (message.status === "FAILED" ? message.error?.message : "…")}</p>
            {message.parts.map((part) => part.type === "tool_call" && <small key={part.toolCallId}>⚙ {part.toolName}: {part.status}</small>)}
            <footer>
              {message.siblings && <Versions {...message.siblings} onChoose={(sibling) => void chat.choose(message, sibling)} />}
              {!chat.isRunning && message.role === "user" && <button onClick={() => edit(message)}>Edit</button>}
              {!chat.isRunning && message.role === "assistant" && <button onClick={() => void chat.regenerate(message)}>Again</button>}
            </footer>
          </article>
        ))}
        {chat.requests.map((request) => (
          <Request key={request.requestId} request={request} messages={chat.messages} onDecide={(body) => void chat.decide(request.requestId, body)} />
        ))}
        {chat.queued.map(({ messageId, content }) => (
          <article key={messageId} className="user queued" aria-label="Queued">
            <p>{content}</p>
            <footer>
              <button onClick={() => void chat.removeQueued(messageId)}>Remove</button>
            </footer>
          </article>
        ))}
        <div ref={end} />
      </div>
      {chat.connection === "lost" && <p role="status">The connection is lost. Trying again …</p>}
      {chat.problem && <p role="alert">{chat.problem.message || chat.problem.code} <button onClick={chat.dismiss}>Close</button></p>}
      <form onSubmit={submit}>
        <input aria-label="Message" placeholder={edited ? "Another version" : "Message"} value={draft} onChange={(event) => setDraft(event.target.value)} autoFocus />
        {chat.isRunning && <button type="button" onClick={() => void chat.stop()}>Stop</button>}
        <button disabled={!chat.isReady}>{edited ? "Send version" : chat.isRunning && !chat.isWaiting ? "Queue" : "Send"}</button>
      </form>
    </>
  );
}

function Versions({ ids, index, onChoose }: { ids: string[]; index: number; onChoose: (id: string) => void }) {
  return (
    <span role="group" aria-label={`Version ${index + 1} of ${ids.length}`}>
      <button aria-label="Previous version" disabled={index === 0} onClick={() => onChoose(ids[index - 1]!)}>‹</button>
      {index + 1} / {ids.length}
      <button aria-label="Next version" disabled={index === ids.length - 1} onClick={() => onChoose(ids[index + 1]!)}>›</button>
    </span>
  );
}

type Decision = Parameters<ReturnType<typeof useConversation>["decide"]>[1];

/** A tool call to allow or deny, with all its arguments: nobody should allow what they don't see. Or a question with its choices. */
function Request({ request, messages, onDecide }: { request: TurnRequest; messages: readonly Message[]; onDecide: (body: Decision) => void }) {
  const parts = messages.flatMap((message) => message.parts);
  const call = parts.find((part) => part.type === "tool_call" && part.approval?.requestId === request.requestId);
  const choices = "type" in request ? ((request.schema?.["enum"] as string[] | undefined) ?? []) : [];
  return (
    <section className="request" role="group" aria-label={request.message}>
      <p>{request.message}</p>
      {call?.type === "tool_call" && <pre>{JSON.stringify(call.arguments, null, 2)}</pre>}
      {!("type" in request) && <button onClick={() => onDecide({ action: "allow" })}>Allow</button>}
      {choices.map((choice) => <button key={choice} onClick={() => onDecide({ action: "answer", content: choice })}>{choice}</button>)}
      <button onClick={() => onDecide({ action: "deny" })}>{"type" in request ? "Decline" : "Deny"}</button>
    </section>
  );
}

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <ThreadkeepProvider frontEnd={frontEnd}>
      <App />
    </ThreadkeepProvider>
  </StrictMode>,
);
