import { afterEach, beforeEach, vi } from "vitest";

import { answer, undraw } from "./draw";

// What draws charts is large, and needs a real canvas.
vi.mock("../src/chart/draw", () => ({ draw: () => () => {} }));

beforeEach(() => {
  answer.mockReset();
  vi.stubGlobal("fetch", answer);
});

afterEach(() => {
  vi.unstubAllGlobals();
  undraw();
});
