import { CopilotChat, CopilotKitProvider, useFrontendTool, useInterrupt } from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import React, { useState } from "react";
import { createRoot } from "react-dom/client";
import { z } from "zod";

// The address names the conversation, so that a reload, or another tab, shows it again.
if (!location.hash) location.hash = crypto.randomUUID();
const threadId = location.hash.slice(1);
// `?agent=<id>` names another agent than the user's default one.
const agentId = new URLSearchParams(location.search).get("agent") ?? "default";

/** A tool that runs in the page: the agent calls it, the page acts, and the agent reads what came of it. */
function useColours(setColour) {
  useFrontendTool({
    name: "set_colour",
    description: "Sets the colour of the page's frame.",
    parameters: z.object({ colour: z.string().describe("A CSS colour") }),
    handler: async ({ colour }) => {
      setColour(colour);
      return `The frame is ${colour}.`;
    },
  });
}

/** Asks before a tool of the agent runs, and asks what the agent wants to know. */
function useRequests() {
  useInterrupt({
    agentId,
    render: ({ interrupts, resolve, cancel }) => (
      <div role="group" aria-label="Request">
        {interrupts.map(({ id, reason, message }) => (
          <p key={id}>
            {message}{" "}
            {reason === "approval" ? (
              <button onClick={() => resolve({ approved: true }, id)}>Allow</button>
            ) : (
              <button onClick={() => resolve(prompt(message) ?? "", id)}>Answer</button>
            )}{" "}
            <button onClick={() => cancel(id)}>Deny</button>
          </p>
        ))}
      </div>
    ),
  });
}

function Chat() {
  const [colour, setColour] = useState("transparent");
  useColours(setColour);
  useRequests();
  return (
    <main style={{ height: "100%", boxSizing: "border-box", border: `8px solid ${colour}` }}>
      <CopilotChat agentId={agentId} threadId={threadId} />
    </main>
  );
}

// If people sign in: headers={{ Authorization: `Bearer ${token}` }}.
createRoot(document.getElementById("root")).render(
  <CopilotKitProvider runtimeUrl="/api/ag-ui" useSingleEndpoint={false} showDevConsole={false}>
    <Chat />
  </CopilotKitProvider>,
);
