import { type AgentDetailView } from "@threadkeep/client";
import { beforeEach, expect, it, vi } from "vitest";

import { AgentPermissions } from "../../src/agents/agent-permissions";
import { click, draw, respond, seen } from "../draw";

const agent = {
  id: "a",
  mcpServers: [],
  settings: { tools: { "threadkeep.recall": { access: "ask" }, "gone.tool": { access: "deny" } }, askUser: true, clientTools: true },
} as unknown as AgentDetailView;
const save = vi.fn(async () => {});

beforeEach(() => {
  save.mockClear();
  respond.mockImplementation(async () => Response.json({ items: [{ server: "threadkeep", name: "recall", effect: "read", description: "" }] }));
});

const shown = async () => {
  const drawn = draw(<AgentPermissions agent={agent} onSave={save} onProblem={() => {}} />);
  await seen(() => drawn.find(".save"));
  return drawn;
};
const button = (of: HTMLElement) => of.querySelector<HTMLButtonElement>(".save .primary")!;

it("keeps the focus when a rule is reset: on its choice, or on what saves that it is gone", async () => {
  const { place } = await shown();
  const reset = (name: string) => place.querySelector<HTMLElement>(`[role=radiogroup][aria-label="${name}"]`)!.parentElement!.querySelector("button")!;
  const group = place.querySelector<HTMLElement>('[role=radiogroup][aria-label="recall"]')!;
  reset("recall").focus();
  await click(reset("recall"));
  expect(group.contains(document.activeElement)).toBe(true);
  reset("gone.tool").focus();
  await click(reset("gone.tool"));
  expect(document.activeElement).toBe(button(place));
});

it("keeps the focus on the button that saved, which does nothing more until something changes", async () => {
  const { place } = await shown();
  const saves = button(place);
  expect(saves.disabled).toBe(true);
  await click(place.querySelector<HTMLElement>('[role=switch]')!);
  saves.focus();
  await click(saves);
  expect([save.mock.calls.length, document.activeElement]).toEqual([1, saves]);
  expect([saves.disabled, saves.getAttribute("aria-disabled")]).toEqual([false, "true"]);
  await click(saves);
  expect(save).toHaveBeenCalledOnce();
});
