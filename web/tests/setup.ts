import { afterAll, afterEach, beforeEach, vi } from "vitest";

import { outbox } from "../src/state/front-end";
import { respond, undraw } from "./draw";

// What draws charts is large, and needs a real canvas.
vi.mock("../src/chart/draw", () => ({ draw: () => () => {} }));

beforeEach(async () => {
  respond.mockReset();
  vi.stubGlobal("fetch", respond);
  await outbox.start({ server: "http://localhost/", userId: "me" });
});

afterEach(async () => {
  await outbox.discard();
  outbox.stop();
  vi.unstubAllGlobals();
  undraw();
});

// What a test's code still loads must arrive before the environment is gone.
afterAll(() => vi.dynamicImportSettled());
