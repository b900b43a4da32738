// Chats of the package `ai`, unmodified, driven by a test: one JSON command per line in, one answer per line out.
import { createInterface } from "node:readline";

const PACKAGES = { 5: "ai-5", 6: "ai-6", 7: "ai" };

class State {
  #shown = { messages: [], status: "ready", error: undefined };
  #changed;
  constructor(changed) {
    this.#changed = changed;
  }
  #set(changes) {
    Object.assign(this.#shown, changes);
    this.#changed();
  }
  get messages() {
    return this.#shown.messages;
  }
  set messages(messages) {
    this.#set({ messages });
  }
  get status() {
    return this.#shown.status;
  }
  set status(status) {
    this.#set({ status });
  }
  get error() {
    return this.#shown.error;
  }
  set error(error) {
    this.#set({ error });
  }
  pushMessage = (message) => (this.messages = [...this.messages, message]);
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => (this.messages = this.messages.with(index, structuredClone(message)));
  snapshot = (value) => structuredClone(value);
}

async function makeChat({ version, api, id, headers = {}, body, messages = [], auto = true }) {
  const ai = await import(PACKAGES[version]);
  const waiting = new Set();
  const seen = { toolCalls: [], data: [], errors: [], finished: [] };
  const changed = () => waiting.forEach((look) => look());
  class Chat extends ai.AbstractChat {
    constructor(state) {
      super({
        id,
        state,
        messages,
        transport: new ai.DefaultChatTransport({ api, headers, body }),
        onToolCall: ({ toolCall }) => void seen.toolCalls.push(toolCall),
        onData: (part) => void seen.data.push(part),
        onError: (error) => void seen.errors.push(error.message),
        onFinish: ({ isAbort, isDisconnect, isError, finishReason }) =>
          void seen.finished.push({ isAbort, isDisconnect, isError, finishReason }),
        sendAutomaticallyWhen: (options) =>
          auto &&
          (ai.lastAssistantMessageIsCompleteWithToolCalls(options) ||
            !!ai.lastAssistantMessageIsCompleteWithApprovalResponses?.(options)),
      });
    }
  }
  const state = new State(changed);
  state.messages = messages;
  const chat = new Chat(state);
  const shown = () => ({ status: state.status, error: state.error?.message, messages: state.messages, ...seen });
  const until = (holds) =>
    new Promise((resolve, reject) => {
      const look = () => {
        if (!holds() && state.status !== "error") return;
        waiting.delete(look);
        if (holds()) resolve();
        else reject(state.error);
      };
      waiting.add(look);
      look();
    });
  return { chat, state, seen, shown, until };
}

const textOf = (message) =>
  (message?.parts ?? [])
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("|");

const chats = new Map();

const commands = {
  async open({ name, ...options }) {
    chats.set(name, await makeChat(options));
  },
  async send({ name, ...message }) {
    await chats.get(name).chat.sendMessage(message);
    return chats.get(name).shown();
  },
  async regenerate({ name, messageId }) {
    await chats.get(name).chat.regenerate({ messageId });
    return chats.get(name).shown();
  },
  async resume({ name }) {
    await chats.get(name).chat.resumeStream();
    return chats.get(name).shown();
  },
  async stop({ name }) {
    await chats.get(name).chat.stop();
    return chats.get(name).shown();
  },
  async approve({ name, id, approved }) {
    await chats.get(name).chat.addToolApprovalResponse({ id, approved });
  },
  async output({ name, ...result }) {
    const { chat } = chats.get(name);
    await (chat.addToolOutput ?? chat.addToolResult)(result);
  },
  async until({ name, text, status = "ready", count = 0 }) {
    const { until, state, shown } = chats.get(name);
    const isThere = () => textOf(state.messages.at(-1)).includes(text) && state.messages.length >= count;
    await until(() => isThere() && (status === "any" || state.status === status));
    return shown();
  },
  async called({ name }) {
    const { until, state, seen, shown } = chats.get(name);
    await until(() => seen.toolCalls.length > 0 && state.status === "ready");
    return shown();
  },
  async read({ version, streams }) {
    const ai = await import(PACKAGES[version]);
    const transport = new ai.DefaultChatTransport({});
    return Promise.all(
      streams.map(async (stream) => {
        const chunks = transport.processResponseStream(new Response(stream).body);
        let message;
        for await (message of ai.readUIMessageStream({ stream: chunks, onError: () => {} }));
        return message;
      }),
    );
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { command, number, ...options } = JSON.parse(line);
  commands[command](options).then(
    (result) => console.log(JSON.stringify({ number, result: result ?? null })),
    (error) => console.log(JSON.stringify({ number, error: String(error?.stack ?? error) })),
  );
}
