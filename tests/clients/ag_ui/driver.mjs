// Agents of @ag-ui/client and CopilotKit, unmodified, driven by a test: one JSON command per line in, one answer
// per line out.
import { createInterface } from "node:readline";

const PACKAGES = { "1.0": "@ag-ui/client", "0.0.59": "ag-ui-client-0.0.59" };

// What the packages say goes where it does not disturb the answers.
console.log = console.warn = console.info = console.debug = console.error;
// A browser only reports these; the package leaves one where a socket breaks.
process.on("unhandledRejection", (error) => console.error("unhandled:", error));
const answer = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

async function openHttpAgent({ version, url, headers, threadId }) {
  const { HttpAgent } = await import(PACKAGES[version]);
  const agent = new HttpAgent({ url, headers, threadId });
  return { agent, run: (options) => agent.runAgent(options), stop: () => agent.abortRun() };
}

async function openCopilotKit({ url, headers, threadId, agentId = "default", tools = {} }) {
  // Without a window it takes itself for a page that is being rendered on a server, and asks for nothing.
  globalThis.window = globalThis;
  globalThis.location = new URL(url);
  const { CopilotKitCore } = await import("@copilotkit/core");
  const core = new CopilotKitCore({ headers });
  const errors = [];
  core.subscribe({ onError: ({ error, code }) => void errors.push(`${code}: ${error.message}`) });
  const isDecided = new Promise((resolve) =>
    core.subscribe({ onRuntimeConnectionStatusChanged: ({ status }) => /^(connected|error)$/.test(status) && resolve() }),
  );
  core.setRuntimeTransport("rest");
  core.setRuntimeUrl(url);
  await isDecided;
  for (const [name, result] of Object.entries(tools)) {
    core.addTool({ name, description: name, handler: async () => result });
  }
  const agent = core.getAgent(agentId);
  if (agent) agent.threadId = threadId;
  return {
    agent,
    errors,
    agents: Object.keys(core.agents),
    run: ({ resume }) => core.runAgent({ agent, resume }),
    connect: () => core.connectAgent({ agent }),
    stop: () => core.stopAgent({ agent }),
  };
}

async function open({ version, ...options }) {
  const opened = await (version === "copilotkit" ? openCopilotKit(options) : openHttpAgent({ version, ...options }));
  const { agent, errors = [] } = opened;
  const events = [];
  const waiting = new Set();
  const changed = () => waiting.forEach((look) => look());
  let failure;
  agent?.subscribe({
    onEvent: ({ event }) => void events.push(event),
    onMessagesChanged: changed,
    onRunErrorEvent: ({ event }) => void errors.push(`${event.code}: ${event.message}`),
    onRunFailed: ({ error }) => void (failure = { message: error.message, status: error.status, payload: error.payload }),
  });
  const shown = () => ({
    messages: agent?.messages,
    state: agent?.state,
    interrupts: agent?.pendingInterrupts,
    types: events.map(({ type }) => type),
    last: events.at(-1),
    errors,
    failure: failure ?? null,
    agents: opened.agents,
  });
  const attempt = async (act) => {
    events.length = 0;
    failure = undefined;
    try {
      await act();
    } catch (error) {
      failure ??= { message: error.message };
    }
    return shown();
  };
  const until = (text) =>
    new Promise((resolve) => {
      const look = () => {
        if (!JSON.stringify(agent.messages).includes(text)) return;
        waiting.delete(look);
        resolve(shown());
      };
      waiting.add(look);
      look();
    });
  return { ...opened, shown, attempt, until };
}

const clients = new Map();

const commands = {
  async open({ name, ...options }) {
    const client = await open(options);
    clients.set(name, client);
    return client.shown();
  },
  /** Sends a message, if there is one, and reads the run to its end. */
  async run({ name, message, state, ...options }) {
    const { agent, attempt, run } = clients.get(name);
    if (message) agent.addMessage({ role: "user", ...message });
    if (state) agent.setState(state);
    return attempt(() => run(options));
  },
  async connect({ name }) {
    const { attempt, connect } = clients.get(name);
    return attempt(connect);
  },
  async stop({ name }) {
    clients.get(name).stop();
  },
  async until({ name, text }) {
    return clients.get(name).until(text);
  },
  async messages({ name, messages }) {
    clients.get(name).agent.setMessages(messages);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, number, ...options } = JSON.parse(line);
  commands[command](options).then(
    (result) => answer({ number, result: result ?? null }),
    (error) => answer({ number, error: String(error?.stack ?? error) }),
  );
}
