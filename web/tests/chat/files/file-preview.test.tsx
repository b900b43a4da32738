import { expect, it } from "vitest";

import { FilePreview } from "../../../src/chat/files/file-preview";
import { draw, respond, seen } from "../../draw";

it("shows the beginning of a long text, and says of how much", async () => {
  respond.mockImplementation(async () => new Response(`${"word ".repeat(100)}\n\n`.repeat(200)));
  draw(<FilePreview path="/api/files/f" name="long.md" kind="markdown" onClose={() => {}} />);
  await seen(() => expect(document.querySelector(".larger .hint")!.textContent).toBe("First 59,737 of 100,400 characters. Download the file for the rest."));
  expect(document.querySelector(".larger .markdown")!.textContent!.length).toBeLessThanOrEqual(60_000);
});
