import { expect, it } from "vitest";

import { fileName } from "../../src/api/download";
import { EventParser } from "../../packages/client/src/sse";
import { newsOf } from "../../packages/client/src/socket";
import { serversOf } from "../../src/agents/server-form";
import { hrefOf, parseRoute } from "../../src/state/route";

it("puts events together, wherever the network cuts them", () => {
  const text = 'id: 1\nevent: text\ndata: {"text":"你好"}\n\n: alive\n\nid: 2\r\ndata: a\r\ndata: b\r\n\r\n';
  for (let cut = 0; cut <= text.length; cut++) {
    const parser = new EventParser();
    expect([...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))]).toEqual(['{"text":"你好"}', "a\nb"]);
  }
});

it("hears turns begin and end over the socket, and no pieces of them", () => {
  const envelope = (type: string) =>
    JSON.stringify({ __msgId: "c", __payload: JSON.stringify({ type, context: { sessionId: "s", turnId: "t" } }) });
  const news = { type: "turn", turnId: "t" };
  expect(newsOf(envelope("conversation_start"))).toEqual({ sessionId: "s", news });
  expect(newsOf(envelope("conversation_end"))).toEqual({ sessionId: "s", news });
  expect(newsOf(envelope("text_delta"))).toBeNull();
  expect(newsOf('{"type": "error"}')).toBeNull();
});

it("hears over the socket that another branch was chosen", () => {
  const told = { type: "path_changed", data: { messageId: "m" }, context: { sessionId: "s" } };
  expect(newsOf(JSON.stringify(told))).toEqual({ sessionId: "s", news: { type: "moved", tip: "m" } });
});

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

it.each([
  ["attachment; filename=\"a_.txt\"; filename*=UTF-8''%E8%A1%A8.txt", "表.txt"],
  ['attachment; filename="a.txt"', "a.txt"],
  ["attachment; filename*=UTF-8''%E8%A1", null],
  [null, null],
])("reads a file's name: %s", (header, name) => {
  expect(fileName(header)).toBe(name);
});

it.each(["#/", "#/new/a1", "#/c/c1", "#/c/c1/12", "#/c/c1/12/m3", "#/agents/a1", "#/usage", "#/briefings"])("finds its way back to %s", (hash) => {
  expect(hrefOf(parseRoute(hash))).toBe(hash);
});
