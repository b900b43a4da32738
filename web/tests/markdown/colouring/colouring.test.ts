import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Colouring, type Coloured } from "../../../src/markdown/colouring/colouring";
import { type Asked, type Line } from "../../../src/markdown/colouring/messages";

type Piece = Exclude<Asked, { forgotten: number }>;

/** A worker that answers when the test says so. */
class StandIn {
  static made: StandIn[] = [];
  onmessage: (event: { data: unknown }) => void = () => {};
  onerror: (event: { preventDefault: () => void }) => void = () => {};
  pieces: Piece[] = [];
  isEnded = false;

  constructor() {
    StandIn.made.push(this);
  }

  postMessage(asked: Asked): void {
    if ("text" in asked) this.pieces.push(asked);
  }

  terminate(): void {
    this.isEnded = true;
  }

  answer({ block, text }: Piece = this.pieces.at(-1)!): void {
    this.onmessage({ data: { block, lines: text.split("\n").map((it) => [[it, "red"]]) } });
  }
}

let shown: Coloured[] = [];
const colouring = () => new Colouring("py", (it) => shown.push(it));
const textOf = (lines: readonly Line[]) => lines.map((line) => line.map(([text]) => text).join("")).join("\n");
const newest = () => StandIn.made.at(-1)!;

beforeEach(() => {
  shown = [];
  vi.useFakeTimers();
  vi.stubGlobal("Worker", StandIn);
  // What a test before left is over.
  if (StandIn.made.length) newest().onerror({ preventDefault: () => {} });
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("colours what has come in whole lines, and the rest when it is complete", () => {
  const block = colouring();
  block.show("one\ntw", false);
  newest().answer();
  expect(shown.at(-1)).toMatchObject({ text: "one" });
  block.show("one\ntwo", false);
  expect(newest().pieces).toHaveLength(1);
  block.show("one\ntwo\nthree", true);
  newest().answer();
  expect(newest().pieces.map((it) => it.text)).toEqual(["one", "two\nthree"]);
  expect(textOf(shown.at(-1)!.lines)).toBe("one\ntwo\nthree");
});

it("asks for few lines at a time, one piece after the other", () => {
  const code = Array.from({ length: 250 }, (_, line) => `line ${line}`).join("\n");
  colouring().show(code, true);
  for (const count of [1, 2, 3]) {
    expect(newest().pieces).toHaveLength(count);
    newest().answer();
  }
  expect(shown).toHaveLength(3);
  expect(shown.at(-1)!.text).toBe(code);
  expect(textOf(shown.at(-1)!.lines)).toBe(code);
});

it("drops what is answered about code that has changed or left", () => {
  const block = colouring();
  block.show("old", true);
  const asked = newest().pieces[0]!;
  block.show("new", true);
  newest().answer(asked);
  expect(shown).toEqual([]);
  newest().answer();
  expect(shown).toMatchObject([{ text: "new" }]);
  block.show("newer", true);
  block.end();
  newest().answer();
  expect(shown).toHaveLength(1);
});

it("ends a worker that is lost in some code; that stays plain, and other code is coloured by the next", () => {
  const [lost, other] = [colouring(), colouring()];
  lost.show("endless", true);
  other.show("a\nb", false);
  const first = newest();
  first.answer(first.pieces[1]);
  other.show("a\nb\nc", true);
  vi.advanceTimersByTime(20_000);
  expect(first.isEnded).toBe(true);
  expect(newest().pieces.map((it) => it.text)).toEqual(["a\nb\nc"]);
  newest().answer();
  expect(shown.at(-1)).toMatchObject({ text: "a\nb\nc" });
});

it("leaves code plain where the worker can't be loaded", () => {
  colouring().show("one", true);
  newest().onerror({ preventDefault: () => {} });
  expect(shown).toEqual([]);
  vi.stubGlobal("Worker", undefined);
  colouring().show("two", true);
  expect(shown).toEqual([]);
});
