import { afterEach, beforeEach, vi } from "vitest";

import { outbox, startOutbox } from "../src/state/outbox";
import { respond, undraw } from "./draw";

// What draws charts is large, and needs a real canvas.
vi.mock("../src/chart/draw", () => ({ draw: () => () => {} }));

let stopOutbox = () => {};

beforeEach(() => {
  respond.mockReset();
  vi.stubGlobal("fetch", respond);
  stopOutbox = startOutbox("me");
});

afterEach(async () => {
  await outbox.discard();
  stopOutbox();
  vi.unstubAllGlobals();
  undraw();
});
