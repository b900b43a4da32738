// @vitest-environment happy-dom
import { expect, it, vi } from "vitest";

import { atNextFrame } from "../../src/browser/platform.ts";

it("draws with the next frame, but lets it show a key first", () => {
  const waiting: FrameRequestCallback[] = [];
  vi.stubGlobal("requestAnimationFrame", (draw: FrameRequestCallback) => waiting.push(draw));
  const frame = () => waiting.splice(0).forEach((draw) => draw(0));
  const draw = vi.fn();
  atNextFrame(draw);
  frame();
  expect(draw).toHaveBeenCalledTimes(1);
  window.dispatchEvent(new KeyboardEvent("keydown", { key: "a" }));
  atNextFrame(draw);
  frame();
  expect(draw).toHaveBeenCalledTimes(1);
  window.dispatchEvent(new KeyboardEvent("keydown", { key: "b" }));
  frame(); // it does not wait for ever
  expect(draw).toHaveBeenCalledTimes(2);
  vi.unstubAllGlobals();
});
