// A page of assistant-ui's own parts, on the adapter that docs/clients.md shows.
import {
  ActionBarPrimitive,
  AssistantRuntimeProvider,
  ComposerPrimitive,
  MessagePrimitive,
  ThreadListItemPrimitive,
  ThreadListPrimitive,
  ThreadPrimitive,
  makeAssistantTool,
} from "@assistant-ui/react";
import { lastAssistantMessageIsCompleteWithToolCalls } from "ai";
import { createRoot } from "react-dom/client";
import { useThreadkeepRuntime } from "./threadkeep.jsx";

const Locate = makeAssistantTool({
  toolName: "locate",
  description: "Says where the user is.",
  parameters: { type: "object", properties: { exact: { type: "boolean" } } },
  execute: async ({ exact }) => ({ place: exact ? "Room 7" : "Berlin" }),
});

const File = ({ filename }) => <i>{filename}</i>;
const parts = { Text: ({ text }) => <span>{text}</span>, File, Image: File, tools: { Fallback: Tool } };

function Tool({ toolName, result }) {
  return (
    <code>
      {toolName}: {JSON.stringify(result)}
    </code>
  );
}

const UserMessage = () => (
  <MessagePrimitive.Root data-role="user">
    <MessagePrimitive.Attachments>{({ attachment }) => <i>{attachment.name}</i>}</MessagePrimitive.Attachments>
    <MessagePrimitive.Parts components={parts} />
    <ActionBarPrimitive.Edit>Edit</ActionBarPrimitive.Edit>
  </MessagePrimitive.Root>
);

const AssistantMessage = () => (
  <MessagePrimitive.Root data-role="assistant">
    <MessagePrimitive.Parts components={parts} />
    <ActionBarPrimitive.Reload>Reload</ActionBarPrimitive.Reload>
  </MessagePrimitive.Root>
);

const EditComposer = () => (
  <ComposerPrimitive.Root>
    <ComposerPrimitive.Input aria-label="Edited message" />
    <ComposerPrimitive.Send>Send edited</ComposerPrimitive.Send>
  </ComposerPrimitive.Root>
);

const Item = () => (
  <ThreadListItemPrimitive.Root>
    <ThreadListItemPrimitive.Trigger>
      <ThreadListItemPrimitive.Title fallback="New chat" />
    </ThreadListItemPrimitive.Trigger>
    <ThreadListItemPrimitive.Delete>Delete</ThreadListItemPrimitive.Delete>
  </ThreadListItemPrimitive.Root>
);

function App() {
  const runtime = useThreadkeepRuntime({
    agentId: location.hash.slice(1),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
  });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <Locate />
      <nav aria-label="Threads">
        <ThreadListPrimitive.New>New thread</ThreadListPrimitive.New>
        <ThreadListPrimitive.Items components={{ ThreadListItem: Item }} />
      </nav>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage, EditComposer }} />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Attachments>{({ attachment }) => <b>{attachment.name}</b>}</ComposerPrimitive.Attachments>
          <ComposerPrimitive.AddAttachment>Attach</ComposerPrimitive.AddAttachment>
          <ComposerPrimitive.Input aria-label="Message" />
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel>Cancel</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

if (location.hash) createRoot(document.getElementById("root")).render(<App />);
