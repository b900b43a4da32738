// Clients of the package openai, unmodified, driven by a test: one JSON command per line in, one answer per line out.
import { createInterface } from "node:readline";
import OpenAI, { toFile } from "openai";

console.log = console.warn = console.info = console.debug = console.error;
const answer = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

const clients = new Map();

/** Calls a method of a client by its path, such as `responses.create`. */
function called(name, path, given) {
  const steps = path.split(".");
  const method = steps.pop();
  const owner = steps.reduce((at, step) => at[step], clients.get(name));
  return owner[method](...given);
}

const COMMANDS = {
  async open({ name, url, key }) {
    clients.set(name, new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 }));
    return null;
  },
  async call({ name = "a", path, given }) {
    const result = await called(name, path, given);
    return { ...result, output_text: result.output_text };
  },
  /** All events of a stream; with `until`, those up to the first of that type, where it is left. */
  async stream({ name = "a", path, given, until }) {
    const events = [];
    for await (const event of await called(name, path, given)) {
      events.push(event);
      if (event.type === until) break;
    }
    return events;
  },
  /** What the package's own helper makes of a stream. */
  async helper({ name = "a", given }) {
    const stream = clients.get(name).responses.stream(...given);
    const texts = [];
    stream.on("response.output_text.delta", (event) => texts.push(event.delta));
    const final = await stream.finalResponse();
    return { final, text: texts.join("") };
  },
  /** All pages of a list. */
  async list({ name = "a", path, given }) {
    const all = [];
    for await (const item of called(name, path, given)) all.push(item);
    return all;
  },
  async upload({ name = "a", fileName, text }) {
    const file = await toFile(Buffer.from(text), fileName);
    return { ...(await clients.get(name).files.create({ file, purpose: "user_data" })) };
  },
  async content({ name = "a", id }) {
    return (await clients.get(name).files.content(id)).text();
  },
};

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { command, number, ...options } = JSON.parse(line);
  try {
    answer({ number, result: await COMMANDS[command](options) });
  } catch (error) {
    const { status, type, code, param, message } = error;
    answer({ number, error: JSON.stringify({ class: error.constructor.name, status, type, code, param, message }) });
  }
});
