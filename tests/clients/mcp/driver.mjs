// Clients of @modelcontextprotocol, unmodified, driven by a test: one JSON command per line in, one answer per line out.
import { createInterface } from "node:readline";

console.log = console.warn = console.info = console.debug = console.error;
const answer = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

const INFO = { name: "test", version: "1" };
const clients = new Map();

async function newest(options) {
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const client = new Client(INFO, {
    capabilities: options.decision ? { elicitation: { form: {} } } : {},
    ...(options.version === "2026-07-28" ? { versionNegotiation: { mode: "auto" } } : {}),
  });
  if (options.decision) client.setRequestHandler("elicitation/create", elicit(options.decision));
  return { client, Transport: StreamableHTTPClientTransport };
}

async function first(options) {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const client = new Client(INFO, { capabilities: options.decision ? { elicitation: { form: {} } } : {} });
  if (options.decision) client.setRequestHandler(ElicitRequestSchema, elicit(options.decision));
  return { client, Transport: StreamableHTTPClientTransport };
}

const questions = [];
const elicit = (decision) => async (request) => {
  questions.push(request.params.message);
  return decision === "never" ? new Promise(() => {}) : { action: "accept", content: { decision } };
};

const COMMANDS = {
  async open({ name, url, headers, ...options }) {
    const { client, Transport } = await (options.package === "sdk" ? first(options) : newest(options));
    await client.connect(new Transport(new URL(url), { requestInit: { headers } }));
    clients.set(name, client);
    return { server: client.getServerVersion() ?? null, version: client.getNegotiatedProtocolVersion?.() ?? null };
  },
  async call({ name, tool, arguments: given }) {
    const client = clients.get(name);
    await client.listTools(); // so that it checks results against the tools' schemas
    const progress = [];
    const onprogress = ({ message }) => progress.push(message);
    const asked = [{ name: tool, arguments: given }];
    const options = { onprogress, resetTimeoutOnProgress: true };
    const result = await client.callTool(...asked, ...(client.getNegotiatedProtocolVersion ? [options] : [undefined, options]));
    return { ...result, progress: progress.join(""), questions };
  },
  async list({ name }) {
    const client = clients.get(name);
    const tools = (await client.listTools()).tools.map((it) => it.name);
    const resources = (await client.listResources()).resources.map((it) => it.uri);
    const templates = (await client.listResourceTemplates()).resourceTemplates.map((it) => it.uriTemplate);
    return { tools, resources, templates };
  },
  async read({ name, uri }) {
    return (await clients.get(name).readResource({ uri })).contents;
  },
  async close({ name }) {
    await clients.get(name).close();
    return null;
  },
};

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { command, number, ...options } = JSON.parse(line);
  try {
    answer({ number, result: await COMMANDS[command](options) });
  } catch (error) {
    answer({ number, error: `${error.name}: ${error.message}` });
  }
});
