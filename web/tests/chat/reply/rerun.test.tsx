import { type Message } from "@threadkeep/client";
import { act } from "react";
import { beforeEach, expect, it, vi } from "vitest";

import { RerunDrawer } from "../../../src/chat/reply/rerun-drawer";
import { click, draw, respond } from "../../draw";

const message = {
  id: "m",
  turnId: "t",
  model: "default/old",
  parts: [{ type: "text", text: "Old answer.", iteration: 1 }],
} as unknown as Message;
const run = (text: string, inBoth: boolean) => ({
  model: "default/new",
  text,
  calls: [{ toolName: "find", server: "web", arguments: { q: "<b>" }, status: "ok", inBoth }],
  usage: { inputTokens: 1, outputTokens: 1234, cacheReadTokens: 0, cacheWriteTokens: 0, estimated: false },
  cost: { amount: "0.0012", currency: "USD" },
  durationMs: 1500,
});
const asked: unknown[] = [];
let result: object;

beforeEach(() => {
  asked.length = 0;
  result = { turnId: "t", question: "?", outcome: "COMPLETED", rerun: run("New answer.", false), original: run("Old answer.", false) };
  HTMLDialogElement.prototype.showModal ??= () => {};
  HTMLDialogElement.prototype.close ??= () => {};
  respond.mockImplementation(async (url, request) => {
    if (url.pathname === "/api/models") return Response.json({ items: [{ id: "default/old" }, { id: "default/new" }] });
    asked.push([url.pathname, JSON.parse(String(request.body))]);
    const frames = [{ type: "text", turn_id: "t", seq: 1, at: 0, text: "New" }, result].map((it) => `data: ${JSON.stringify(it)}\n\n`);
    return new Response(frames.join(""));
  });
});

const comes = (check: () => void) =>
  vi.waitFor(async () => {
    await act(async () => {});
    check();
  });

async function tried(onRegenerate = vi.fn()) {
  const drawn = draw(<RerunDrawer agentId="a" message={message} onRegenerate={onRegenerate} onClose={() => {}} />);
  await comes(() => expect(drawn.find(".picker-field").textContent).toBe("default/new"));
  await click(drawn.find("form [type=submit]"));
  await comes(() => expect(drawn.text).toContain("Run again"));
  return drawn;
}

it("shows another model's answer beside the one there is, with cost, time and the calls that differ", async () => {
  const onRegenerate = vi.fn();
  const drawn = await tried(onRegenerate);
  expect(asked).toEqual([["/api/turns/t/rerun", { model: "default/new" }]]);
  for (const text of ["Old answer.", "New answer.", "0.0012 USD · 1.5 s · 1,234 output tokens", '{"q":"<b>"}']) expect(drawn.text).toContain(text);
  expect(drawn.place.querySelectorAll(".differs")).toHaveLength(2);
  await click(drawn.named("Regenerate the answer with this model"));
  expect(onRegenerate).toHaveBeenCalledWith("default/new");
});

it("says that it ended at a call without a result", async () => {
  result = { ...result, outcome: "NEEDS_TOOL", error: { code: "NEEDS_TOOL", message: "…", retryable: false } };
  expect((await tried()).text).toContain("no result for");
});
