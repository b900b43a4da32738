import { expect, it } from "vitest";

import { serversOf } from "../../src/agents/server-form";

it.each([
  ['{"mcpServers": {"a": {"command": "uvx"}}}', { a: { command: "uvx" } }],
  ['{"a": {"url": "https://x"}}', { a: { url: "https://x" } }],
  ["{", null],
  ["[]", null],
  ["7", null],
  ["{}", null],
  ['{"a": 1}', null],
  ['{"mcpServers": []}', null],
])("reads pasted servers: %s", (text, servers) => {
  expect(serversOf(text)).toEqual(servers);
});
