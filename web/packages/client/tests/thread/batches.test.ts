import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { Batches } from "../../src/thread/batches";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("shows what has come in batches, each once", () => {
  const shown: number[][] = [];
  const batches = new Batches<number>((items) => shown.push(items));
  for (let count = 0; count < 100; count++) {
    batches.add([count]);
    vi.advanceTimersByTime(10);
  }
  batches.flush();
  expect(shown.flat()).toEqual(Array.from({ length: 100 }, (_, index) => index));
  expect(shown.length).toBeLessThanOrEqual(25);
});

it("waits longer where showing takes long", () => {
  const shown: number[][] = [];
  const batches = new Batches<number>((items) => shown.push(items), { leastMs: () => 500 });
  batches.add([1]);
  vi.advanceTimersByTime(400);
  expect(shown).toEqual([]);
  vi.advanceTimersByTime(200);
  expect(shown).toEqual([[1]]);
});

it("shows at once what is left, and then nothing more", () => {
  const show = vi.fn();
  const batches = new Batches<number>(show);
  batches.add([1, 2]);
  batches.flush();
  vi.advanceTimersByTime(1000);
  expect(show).toHaveBeenCalledExactlyOnceWith([1, 2]);
});
