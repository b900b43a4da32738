// What a front end does, without a browser: a conversation that is kept up to date, over a connection that breaks.
import { ClientTools, FrontEnd, contentOf, isLocalId, isRunning, openRequests } from "@threadkeep/client";

const [baseUrl, agentId] = process.argv.slice(2);
const tools = new ClientTools();
const frontEnd = new FrontEnd({ baseUrl, tools });
const print = (value) => console.log(JSON.stringify(value));
await frontEnd.start();

/** Waits until a store's value is as wanted. */
function until(store, isWanted) {
  return new Promise((resolve) => {
    const look = () => {
      const value = store.get();
      if (isWanted(value)) (unsubscribe(), resolve(value));
    };
    const unsubscribe = store.subscribe(look);
    queueMicrotask(look);
  });
}
const texts = ({ messages }) => messages.map(({ parts }) => contentOf(parts));
const isDone = (state) => state.conversation && !isRunning(state) && !state.queued.length;

// The first message begins the conversation.
const first = frontEnd.outbox.prepare({ kind: "message", conversationId: null, agentId, content: "Count", files: [] });
const created = new Promise((resolve) => frontEnd.outbox.on((event) => event.type === "created" && resolve(event)));
await frontEnd.outbox.add(first);
const { conversation, entry } = await created;
const thread = frontEnd.open(conversation.id);
thread.begin(conversation, entry);
await thread.join();

await until(thread.state, (it) => texts(it).at(-1) === "One. ");
print("One. ");
await until(thread.state, (it) => it.connection === "lost");
print("lost");
print(texts(await until(thread.state, isDone)));

// A question, which is also in the list of all.
await thread.sending.send("Book a room");
const { live } = await until(thread.state, (it) => it.live && openRequests(it.live.message.parts).length);
const [{ conversationId }] = await until(frontEnd.approvals.items, (it) => it.length);
print(conversationId === thread.id);
const [asked] = openRequests(live.message.parts);
await thread.sending.decide(live.message.turnId, asked.requestId, { action: "answer", content: "Blue" });
print(texts(await until(thread.state, isDone)).at(-1));

// Another version of an answer, and back.
await thread.sending.send("Sing");
const { messages } = await until(thread.state, isDone);
print(texts({ messages }).at(-1));
await thread.branches.regenerate(messages.at(-1));
const again = await until(thread.state, isDone);
print(texts(again).at(-1));
await thread.branches.choose(messages.at(-1).id, again.messages.at(-1));
print(texts(thread.state.get()).at(-1));

// A file, and a message that waits for the end of the turn.
const source = new File(["The rent is 900 euros."], "lease.md", { type: "text/markdown" });
await thread.sending.send("Tell a story");
await until(thread.state, (it) => it.live);
await thread.sending.send("How much is the rent?", {
  files: [{ key: "f", fileName: source.name, mediaType: source.type, size: source.size, kept: null, source }],
});
// The server may list it before its response has come.
const { queued } = await until(thread.state, (it) => it.queued.length === 1 && !isLocalId(it.queued[0].messageId));
print(queued.map(({ content, files }) => [content, files.map(({ fileName }) => fileName)]));
print(texts(await until(thread.state, isDone)).slice(-2));

// A tool that runs here.
tools.add({
  name: "color",
  description: "The color of something.",
  parameters: { type: "object", properties: { of: { type: "string" } } },
  run: ({ of }) => `${of}: blue`,
});
await thread.sending.send("Which color has the sky?");
print(texts(await until(thread.state, isDone)).at(-1));

// Stopping, also by another message, and what another client changes.
await thread.sending.send("Go on");
await until(thread.state, (it) => texts(it).at(-1) === "Well, ");
await thread.sending.stop();
const stopped = await until(thread.state, isDone);
print(stopped.messages.at(-1).status);
await thread.sending.send("Go on");
await until(thread.state, (it) => texts(it).at(-1) === "Well, ");
await thread.sending.send("Sing", { stops: true });
// Between the two turns, nothing runs for a moment.
const sung = await until(thread.state, (it) => isDone(it) && texts(it).at(-2) === "Sing");
print(texts(sung).slice(-3));
await frontEnd.api.send("PATCH", `/api/conversations/${thread.id}`, { title: "Renamed elsewhere" });
print((await until(frontEnd.conversations.state, ({ items }) => items[0]?.title === "Renamed elsewhere")).items.length);
thread.leave();
frontEnd.stop();
