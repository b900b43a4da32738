// Follows a turn over a connection that breaks, then does everything else that a program does.
import { Client, TurnWaiting } from "@threadkeep/client";

const [baseUrl, agentId] = process.argv.slice(2);
const client = new Client({ baseUrl });
const print = (value) => console.log(JSON.stringify(value));

const { id } = await client.createConversation(agentId);

// A stream that breaks off in the middle goes on.
const { turnId } = await client.start(id, "Count");
const onLost = () => print("lost");
for await (const event of client.follow(turnId, { onLost })) if (event.type === "text") print(event.text);
print((await client.reply(turnId)).content);

// A question of the turn.
try {
  await client.ask(id, "Book a room");
} catch (error) {
  if (!(error instanceof TurnWaiting)) throw error;
  const [asked] = error.approvals;
  print(asked.message);
  await client.answer(asked, { action: "answer", content: "Blue" });
  print((await client.reply(error.turnId)).content);
}

// Another version of an answer, and back.
print((await client.ask(id, "Sing")).content);
for await (const event of client.regenerate(id)) if (event.type === "text") print(event.text);
const latest = async () => (await client.conversation(id)).messages.at(-1);
const { siblings } = await latest();
await client.choosePath(id, siblings.ids[0]);
print((await latest()).content);

// A queued message, while a turn runs.
const story = await client.start(id, "Tell a story");
const queued = await client.post(id, "And then?", { whenBusy: "queue" });
await client.editQueued(id, queued.messageId, "And what then?");
print((await client.queued(id)).map(({ content }) => content));
print("queued");
for await (const _ of client.follow(story.turnId));
const next = (await client.conversation(id)).activeTurnId;
print((await client.reply(next ?? (await latest()).turnId)).content);

// A file.
const rent = new File(["The rent is 900 euros."], "lease.md", { type: "text/markdown" });
const answer = await client.ask(id, "How much is the rent?", { files: [rent] });
print(answer.content);
const [file] = (await client.conversation(id)).messages.at(-2).parts;
print([file.fileName, await (await client.readFile(file.fileId)).text()]);

// A tool that runs here.
const color = {
  name: "color",
  description: "The color of something.",
  parameters: { type: "object", properties: { of: { type: "string" } } },
  run: ({ of }) => `${of}: blue`,
};
print((await client.ask(id, "Which color has the sky?", { tools: [color] })).content);

// Stopping.
const long = await client.start(id, "Go on");
for await (const event of client.follow(long.turnId)) if (event.type === "text") break;
print((await client.abort(id)).status);
print((await client.turn(long.turnId)).status);

// A turn that ends when nobody follows it, and one that somebody does follow.
const watched = client.send(id, "Go on", { onDisconnect: "stop" });
let left;
for await (const event of watched) if (event.type === "text") {
  left = event.turn_id;
  break;
}
for (;;) {
  const { status } = await client.turn(left);
  if (status === "RUNNING") await new Promise((resolve) => setTimeout(resolve, 500));
  else { print(status); break; }
}
print((await client.ask(id, "How much is the rent?", { onDisconnect: "stop" })).content);
