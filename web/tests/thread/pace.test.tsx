import { act } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Store, useSelected } from "../../src/state/store";
import { Paced } from "../../packages/client/src/thread/paced";
import { draw } from "../draw";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("shows what has come in batches, each once", () => {
  const shown: number[][] = [];
  const paced = new Paced<number>((items) => shown.push(items));
  for (let count = 0; count < 100; count++) {
    paced.add([count]);
    vi.advanceTimersByTime(10);
  }
  paced.flush();
  expect(shown.flat()).toEqual(Array.from({ length: 100 }, (_, index) => index));
  expect(shown.length).toBeLessThanOrEqual(25);
});

it("waits longer where showing takes long", () => {
  const shown: number[][] = [];
  const paced = new Paced<number>(
    (items) => shown.push(items),
    () => 500,
  );
  paced.add([1]);
  vi.advanceTimersByTime(400);
  expect(shown).toEqual([]);
  vi.advanceTimersByTime(200);
  expect(shown).toEqual([[1]]);
});

it("shows at once what is left, and then nothing more", () => {
  const show = vi.fn();
  const paced = new Paced<number>(show);
  paced.add([1, 2]);
  paced.flush();
  vi.advanceTimersByTime(1000);
  expect(show).toHaveBeenCalledExactlyOnceWith([1, 2]);
});

it("draws again only what shows the part that has changed", () => {
  const store = new Store({ text: "", running: true });
  const times = vi.fn();
  function Button() {
    times();
    return useSelected(store, (it) => it.running) ? "Stop" : "Send";
  }
  const drawn = draw(<Button />);
  for (let count = 0; count < 50; count++) act(() => store.update((it) => ({ ...it, text: `${it.text}x` })));
  expect(times).toHaveBeenCalledOnce();
  act(() => store.update((it) => ({ ...it, running: false })));
  expect(drawn.text).toBe("Send");
});
