import { afterEach, expect, it } from "vitest";

import { openThread } from "../../src/state/front-end";
import { respond } from "../draw";

const thread = openThread("c");
afterEach(() => thread.leave());

it("looks again when the user returns to the page, and no more once it is left", async () => {
  respond.mockImplementation(async () => Response.json({ id: "c", activeTurnId: null, summary: null, messages: [], nextCursor: null }));
  await thread.join();
  const asked = respond.mock.calls.length;
  window.dispatchEvent(new Event("focus"));
  expect(respond.mock.calls.length).toBe(asked + 1);
  thread.leave();
  window.dispatchEvent(new Event("focus"));
  expect(respond.mock.calls.length).toBe(asked + 1);
});
