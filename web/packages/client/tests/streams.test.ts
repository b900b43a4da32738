import { expect, it } from "vitest";

import { changeIn } from "../src/socket";
import { EventParser } from "../src/sse";

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
  const change = { type: "turn", turnId: "t" };
  expect(changeIn(envelope("conversation_start"))).toEqual({ sessionId: "s", change });
  expect(changeIn(envelope("conversation_end"))).toEqual({ sessionId: "s", change });
  expect(changeIn(envelope("text_delta"))).toBeNull();
  expect(changeIn('{"type": "error"}')).toBeNull();
});

it("hears over the socket that another branch was chosen", () => {
  const told = { type: "path_changed", data: { messageId: "m" }, context: { sessionId: "s" } };
  expect(changeIn(JSON.stringify(told))).toEqual({ sessionId: "s", change: { type: "path", tip: "m" } });
});

it("hears no change in what only a newer server sends, in any protocol", () => {
  expect(changeIn(JSON.stringify({ type: "hologram", context: { sessionId: "s" } }))).toBeNull();
  expect(changeIn(JSON.stringify({ jsonrpc: "2.0", method: "stream.event", params: {} }))).toBeNull();
  expect(changeIn(JSON.stringify({ __payload: JSON.stringify({ type: "hologram" }) }))).toBeNull();
});
