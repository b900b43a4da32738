import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";

export function Chat({ id }) {
  const { messages, sendMessage } = useChat({
    id, // any id of yours: the conversation is kept under it
    resume: true, // after a reload, the answer goes on
    transport: new DefaultChatTransport({ api: "/api/ai-sdk/chat" }),
  });
  return (
    <>
      {messages.map(({ id, role, parts }) => (
        <p key={id}>
          {role}: {parts.map((part) => part.text)}
        </p>
      ))}
      <button onClick={() => sendMessage({ text: "Hello! What can you do?" })}>
        Ask
      </button>
    </>
  );
}
