import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";
import { useState } from "react";

export function Chat({ api, id, messages: loaded }) {
  const [editing, setEditing] = useState();
  const { messages, sendMessage, regenerate, stop, status, error, addToolApprovalResponse } = useChat({
    id,
    messages: loaded,
    resume: true,
    transport: new DefaultChatTransport({ api: `${api}?version=7` }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const isBusy = status === "submitted" || status === "streaming";

  function send(event) {
    event.preventDefault();
    const form = event.target;
    const { text, files } = form.elements;
    sendMessage({ text: text.value, files: files.files, messageId: editing });
    setEditing(undefined);
    form.reset();
  }

  // `stop` only closes this page's connection; the agent stops when the server is told.
  function stopForAll() {
    fetch(`${api}/${id}/stream`, { method: "DELETE" });
    stop();
  }

  return (
    <>
      <h1>useChat on Threadkeep</h1>
      <div role="log">
        {messages.map((message) => (
          <article key={message.id} data-role={message.role}>
            {message.parts.map((part, at) => (
              <Part key={at} part={part} decide={addToolApprovalResponse} />
            ))}
            {message.role === "user" ? (
              <button onClick={() => setEditing(message.id)}>Edit</button>
            ) : (
              <button onClick={() => regenerate({ messageId: message.id })}>Answer again</button>
            )}
          </article>
        ))}
      </div>
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input name="text" aria-label={editing ? "Edited message" : "Message"} autoComplete="off" required />
        <input name="files" type="file" aria-label="Files" multiple />
        {isBusy ? (
          <button type="button" onClick={stopForAll}>
            Stop
          </button>
        ) : (
          <button>Send</button>
        )}
      </form>
    </>
  );
}

function Part({ part, decide }) {
  switch (part.type) {
    case "text":
      return <span>{part.text}</span>;
    case "reasoning":
      return <p className="aside">{part.text}</p>;
    case "file":
      return part.mediaType.startsWith("image/") ? (
        <img src={part.url} alt={part.filename ?? "Image"} />
      ) : (
        <a href={part.url}>{part.filename}</a>
      );
    case "source-url":
    case "source-document":
      return (
        <p className="aside">
          [{part.sourceId}] {part.title}
        </p>
      );
    case "data-notice":
      return <p className="aside">{part.data.message}</p>;
    case "dynamic-tool":
      return <Tool part={part} decide={decide} />;
    default:
      return null;
  }
}

function Tool({ part, decide }) {
  return (
    <div className="aside">
      {part.toolName} {JSON.stringify(part.input)}: {part.state}
      {part.state === "approval-requested" && (
        <>
          {" "}
          <button onClick={() => decide({ id: part.approval.id, approved: true })}>Allow</button>{" "}
          <button onClick={() => decide({ id: part.approval.id, approved: false })}>Deny</button>
        </>
      )}
    </div>
  );
}
