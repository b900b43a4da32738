/** What to write to use a key, ready to run: what the page shows is what its test runs.
 *
 * The files in `snippets/` are as docs/clients.md shows them; here they get the server's address, the key and the agent.
 */

// oxlint-disable import/default -- `?raw` gives a file's text

import claudeCode from "./snippets/claude-code.json?raw";
import codex from "./snippets/codex.toml?raw";
import copilotKit from "./snippets/copilotkit.jsx?raw";
import cursor from "./snippets/cursor.json?raw";
import keyInShell from "./snippets/key.sh?raw";
import openaiNode from "./snippets/openai.mjs?raw";
import openaiPython from "./snippets/openai.py?raw";
import chatHook from "./snippets/use-chat.jsx?raw";
import viteConfig from "./snippets/vite.config.mjs?raw";
import vsCode from "./snippets/vs-code.json?raw";

/** Stands for a key in the files. */
export const PLACEHOLDER = "tk_your_key";

export interface Connection {
  /** The server's address, with the path that it is mounted at, without a slash at its end. */
  url: string;
  key: string;
  /** Whether the key may hold conversations, or only read. */
  canChat: boolean;
  /** The agent to talk to; null for the default one. */
  agentId: string | null;
  /** What the default agent is called. */
  defaultAgent: string;
}

export interface Snippet {
  name: string;
  blocks: readonly Block[];
}

/** A file, or what to type into a terminal. */
export interface Block {
  /** Where it goes, if that matters. */
  file?: string;
  language: string;
  code: string;
}

export interface SnippetGroup {
  kind: "api" | "openai" | "pages" | "mcp";
  snippets: readonly Snippet[];
}

export function snippetsFor(connection: Connection): SnippetGroup[] {
  const { canChat, agentId, defaultAgent } = connection;
  const api: SnippetGroup = {
    kind: "api",
    snippets: [
      { name: "curl", blocks: [{ language: "sh", code: curl(connection) }] },
      { name: "Python", blocks: [{ language: "python", code: python(connection) }] },
      { name: "TypeScript", blocks: [{ language: "typescript", code: typescript(connection) }] },
    ],
  };
  const at = (code: string) => code.replaceAll("http://127.0.0.1:8710", connection.url);
  const key: Block = { language: "sh", code: keyInShell.replace(PLACEHOLDER, connection.key) };
  const mcp: SnippetGroup = {
    kind: "mcp",
    snippets: [
      { name: "Claude Code", blocks: [key, { file: ".mcp.json", language: "json", code: at(claudeCode) }] },
      { name: "Cursor", blocks: [key, { file: ".cursor/mcp.json", language: "json", code: at(cursor) }] },
      { name: "VS Code", blocks: [{ file: ".vscode/mcp.json", language: "json", code: at(vsCode) }] },
      { name: "Codex", blocks: [key, { file: "~/.codex/config.toml", language: "toml", code: at(codex) }] },
    ],
  };
  if (!canChat) return [api, mcp];
  const asking = (code: string) => at(code).replace('"Assistant"', () => JSON.stringify(agentId ?? defaultAgent));
  const proxy: Block = { file: "vite.config.mjs", language: "js", code: at(viteConfig) };
  const openai: SnippetGroup = {
    kind: "openai",
    snippets: [
      { name: "openai for Python", blocks: [key, { language: "python", code: asking(openaiPython) }] },
      { name: "openai for Node.js", blocks: [key, { language: "js", code: asking(openaiNode) }] },
    ],
  };
  const pages: SnippetGroup = {
    kind: "pages",
    snippets: [
      { name: "useChat", blocks: [key, proxy, { file: "chat.jsx", language: "jsx", code: chatHookOf(agentId) }] },
      { name: "CopilotKit", blocks: [key, proxy, { file: "chat.jsx", language: "jsx", code: copilotKitOf(agentId) }] },
    ],
  };
  return [api, openai, pages, mcp];
}

const chatHookOf = (agentId: string | null) =>
  agentId === null ? chatHook : chatHook.replace('chat" }', `chat", body: { agentId: "${agentId}" } }`);

const copilotKitOf = (agentId: string | null) => copilotKit.replace('"default"', `"${agentId ?? "default"}"`);

const QUESTION = "Hello! What can you do?";

function curl({ url, key, canChat, agentId }: Connection): string {
  const head = `KEY=${key}\nURL=${url}\n`;
  if (!canChat) return `${head}curl -s "$URL/api/conversations" -H "x-api-key: $KEY"\n`;
  const send = (path: string) => `curl -s "$URL${path}?wait=true" \\
  -H "x-api-key: $KEY" -H "Accept: application/json" -H "Content-Type: application/json" \\
  -d '{"content": "${QUESTION}"}'
`;
  if (agentId === null) return head + send("/api/chat");
  return `${head}ID=$(curl -s -X PUT -H "x-api-key: $KEY" \\
  "$URL/api/agents/${agentId}/conversation" | cut -d '"' -f 4)
${send("/api/conversations/$ID/messages")}`;
}

function python({ url, key, canChat, agentId }: Connection): string {
  const body = !canChat
    ? `    for conversation in client.conversations():
        print(conversation.title)`
    : `${
        agentId === null
          ? `    agent = next(it for it in client.agents() if it.is_default)
    conversation = client.main_conversation(agent.id)`
          : `    conversation = client.main_conversation("${agentId}")`
      }
    print(client.ask(conversation.id, "${QUESTION}").content)`;
  return `# In a clone of Threadkeep: pip install .
from threadkeep import BlockingClient

with BlockingClient("${url}", token="${key}") as client:
${body}
`;
}

function typescript({ url, key, canChat, agentId }: Connection): string {
  const body = canChat
    ? `const { id } = await client.mainConversation(${agentId === null ? "" : `"${agentId}"`});
console.log((await client.ask(id, "${QUESTION}")).content);`
    : `for await (const { title } of client.conversations()) console.log(title);`;
  return `// In a clone of Threadkeep, make packages builds dist/threadkeep-client-*.tgz for npm install.
import { Client } from "@threadkeep/client";

const client = new Client({ baseUrl: "${url}", token: "${key}" });
${body}
`;
}
