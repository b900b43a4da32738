import { afterEach, beforeEach, vi } from "vitest";

import { outbox, startOutbox } from "../src/state/outbox";
import { answer, undraw } from "./draw";

// What draws charts is large, and needs a real canvas.
vi.mock("../src/chart/draw", () => ({ draw: () => () => {} }));

let stopOutbox = () => {};

beforeEach(() => {
  answer.mockReset();
  vi.stubGlobal("fetch", answer);
  stopOutbox = startOutbox("me");
});

afterEach(async () => {
  await outbox.discard();
  stopOutbox();
  vi.unstubAllGlobals();
  undraw();
});
