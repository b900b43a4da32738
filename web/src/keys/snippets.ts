/** Programs that use a key, ready to run: what the page shows is what its test runs. */

export interface Connection {
  /** The server's address, with the path that it is mounted at, without a slash at its end. */
  url: string;
  key: string;
  /** Whether the key may hold conversations, or only read. */
  canChat: boolean;
  /** The agent to talk to; null for the default one. */
  agentId: string | null;
}

export interface Snippet {
  name: string;
  language: string;
  code: string;
}

export function snippetsFor(connection: Connection): Snippet[] {
  return [
    { name: "curl", language: "sh", code: curl(connection) },
    { name: "Python", language: "python", code: python(connection) },
    { name: "TypeScript", language: "typescript", code: typescript(connection) },
  ];
}

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
  return `# pip install threadkeep
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
  return `import { Client } from "@threadkeep/client";

const client = new Client({ baseUrl: "${url}", token: "${key}" });
${body}
`;
}
