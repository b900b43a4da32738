import { afterEach, expect, it } from "vitest";

import { openThread } from "../../src/state/open-thread";
import { answer } from "../draw";

const thread = openThread("c");
afterEach(() => thread.leave());

it("looks again when the user returns to the page, and no more once it is left", async () => {
  answer.mockImplementation(async () => Response.json({ id: "c", activeTurnId: null, summary: null, messages: [], nextCursor: null }));
  await thread.join();
  const asked = answer.mock.calls.length;
  window.dispatchEvent(new Event("focus"));
  expect(answer.mock.calls.length).toBe(asked + 1);
  thread.leave();
  window.dispatchEvent(new Event("focus"));
  expect(answer.mock.calls.length).toBe(asked + 1);
});
