import { expect, it } from "vitest";

import { EventParser } from "../src/sse";

it("puts events together, wherever the network cuts them", () => {
  const text = 'id: 1\nevent: text\ndata: {"text":"你好"}\n\n: alive\n\nid: 2\r\ndata: a\r\ndata: b\r\n\r\n';
  for (let cut = 0; cut <= text.length; cut++) {
    const parser = new EventParser();
    expect([...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))]).toEqual(['{"text":"你好"}', "a\nb"]);
  }
});
