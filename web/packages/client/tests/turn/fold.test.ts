import { describe, expect, it } from "vitest";

import { fold, foldAll } from "../../src/turn/fold";
import { citationsOf, contentOf } from "../../src/turn/parts";
import { RECORDINGS, begun, recording } from "../recordings";

const INTO_CALLS = new Set(["tool_result", "approval_request"]);

describe("the fold of recorded logs", () => {
  it.each(RECORDINGS)("is the message that the server gives: $name", (it) => {
    const { message } = foldAll(begun(it), it.events);
    expect(message.parts).toEqual(it.message.parts);
    expect(message).toEqual(it.message);
  });

  it.each(RECORDINGS)("says and cites what the server says: $name", (it) => {
    const { parts } = foldAll(begun(it), it.events).message;
    expect(contentOf(parts)).toBe(it.message.content);
    expect(citationsOf(parts)).toEqual(it.message.citations);
  });

  it.each(RECORDINGS)("does not change when events come twice: $name", (it) => {
    const once = foldAll(begun(it), it.events);
    expect(foldAll(once, it.events)).toBe(once);
    const stuttering = it.events.flatMap((event, index) => [event, ...it.events.slice(Math.max(0, index - 3), index)]);
    expect(foldAll(begun(it), stuttering)).toEqual(once);
  });

  it.each(RECORDINGS)("only ever adds at the end, and changes no part that is complete: $name", (it) => {
    let reply = begun(it);
    for (const event of it.events) {
      const before = reply.message.parts;
      const { growingAt } = reply;
      reply = fold(reply, event);
      const kept = reply.message.parts.slice(0, before.length);
      expect(kept.map(({ type }) => type)).toEqual(before.map(({ type }) => type));
      const changed = kept.filter((part, index) => part !== before[index] && index < before.length - 1 && index !== growingAt);
      // A result goes into its call, and so does what its user is asked and answers; a model call that is made again
      // supersedes what there was of it; a step ends. Anything else that changes is the last part, or the text that grows.
      if (event.type === "iteration_restart") expect(changed.every((part) => part.superseded)).toBe(true);
      else if (["step", "done", "error"].includes(event.type)) expect(changed.every(({ type }) => type === "step")).toBe(true);
      else if (event.type === "approval_response") expect(changed.length).toBeLessThan(2);
      else expect(changed.map(({ type }) => type)).toEqual(INTO_CALLS.has(event.type) ? changed.map(() => "tool_call") : []);
    }
  });

  it("never changes what it was given", () => {
    const some = RECORDINGS[0]!;
    const start = Object.freeze(begun(some));
    const before = structuredClone(start);
    some.events.reduce(fold, start);
    expect(start).toEqual(before);
  });

  it("keeps the text of a turn that was stopped or failed", () => {
    const texts = RECORDINGS.filter((it) => it.message.status !== "COMPLETED" && it.events.some(({ type }) => type === "text"));
    for (const { message } of texts) expect(message.content).not.toBe("");
  });
});

it("runs the texts of two model calls never together", () => {
  const { parts } = recording("text, tool, thought, tool, text").message;
  expect(contentOf(parts)).toBe("I look at the numbers first.\n\nRevenue grew.");
});

it("counts nothing that was superseded", () => {
  const text = { type: "text", text: "Old. ", iteration: 1, superseded: true } as const;
  const hits = [{ source: "a.md", text: "A", score: 1 }];
  const found = { type: "retrieval", query: "a", hits, iteration: 1, superseded: true } as const;
  expect(contentOf([text, { type: "text", text: "New.", iteration: 1 }])).toBe("New.");
  expect(citationsOf([found])).toEqual([]);
});
