import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { readReport } from "../../src/previews/sandbox/messages";
import { Vigil } from "../../src/previews/sandbox/vigil";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it.each([null, 1, "alive", {}, { type: "height", height: "9" }, { type: "height", height: Infinity }, { type: "broken" }, { type: "other" }])(
  "ignores %j",
  (data) => {
    expect(readReport(data)).toBeNull();
  },
);

it("shortens what a sandbox says", () => {
  expect(readReport({ type: "broken", reason: "x".repeat(10_000) })).toEqual({ type: "broken", reason: "x".repeat(2000) });
});

it("notices a sandbox that says nothing any more, once", () => {
  const noticed = vi.fn();
  const vigil = new Vigil(noticed);
  vi.advanceTimersByTime(10_000);
  vigil.heard();
  vi.advanceTimersByTime(15_000);
  expect(noticed).not.toHaveBeenCalled();
  vi.advanceTimersByTime(60_000);
  expect(noticed.mock.calls).toEqual([["silent"]]);
});

it("notices a sandbox that says too much, once", () => {
  const noticed = vi.fn();
  const vigil = new Vigil(noticed);
  for (let at = 0; at < 1000; at++) vigil.heard();
  expect(noticed.mock.calls).toEqual([["flooding"]]);
});

it("lets one speak that says much over a long time", () => {
  const noticed = vi.fn();
  const vigil = new Vigil(noticed);
  for (let at = 0; at < 1000; at++) {
    vigil.heard();
    vi.advanceTimersByTime(20);
  }
  expect(noticed).not.toHaveBeenCalled();
  vigil.end();
});
