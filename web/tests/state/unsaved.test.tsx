import { ApiError, type AgentDetailView } from "@threadkeep/client";
import { act, useState } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { AgentGeneral } from "../../src/agents/agent-general";
import { confirmation } from "../../src/state/confirmation";
import { askBeforeLeaving, go, route } from "../../src/state/route";
import { useLeaveQuestion } from "../../src/state/unsaved";
import { Tabs } from "../../src/ui/tabs";
import { en } from "../../src/words/en";
import { click, draw, type Drawn, type, undraw } from "../draw";

const AGENT = { name: "Ada", description: "", systemPrompt: "Be kind.", visibility: "private" } as AgentDetailView;
const onSave = vi.fn<(all: unknown, changes: unknown) => Promise<void>>();
const onProblem = vi.fn();

function Page({ agent }: { agent: AgentDetailView }) {
  useLeaveQuestion(en);
  const general = <AgentGeneral agent={agent} action="Save" onSave={onSave} onProblem={onProblem} />;
  const [open, setOpen] = useState("general");
  const tabs = [
    { id: "general", name: "General", content: general },
    { id: "other", name: "Other", content: <p>Other</p> },
  ];
  return <Tabs tabs={tabs} open={open} onOpen={setOpen} />;
}

const field = (drawn: Drawn, label: string) =>
  drawn.place.querySelector<HTMLInputElement>(`[id="${[...drawn.place.querySelectorAll("label")].find((it) => it.textContent === label)!.htmlFor}"]`)!;

async function gone(hash: string): Promise<void> {
  await act(async () => {
    history.replaceState(null, "", hash); // setting the hash would tell of it once more, at any later time
    window.dispatchEvent(new Event("hashchange"));
  });
}

beforeEach(async () => {
  onSave.mockReset().mockResolvedValue();
  onProblem.mockReset();
  await gone("#/agents/1");
});

afterEach(() => {
  undraw();
  return gone("#/");
});

it("has nothing to save until something is changed, and then saves what was", async () => {
  const drawn = draw(<Page agent={AGENT} />);
  expect(drawn.named<HTMLButtonElement>("Save").disabled).toBe(true);
  await type(field(drawn, "Description"), "Counts");
  expect(drawn.text).toContain("Unsaved changes");
  await type(field(drawn, "Description"), "");
  expect(drawn.named<HTMLButtonElement>("Save").disabled).toBe(true);
  await type(field(drawn, "Description"), "Counts");
  await click(drawn.named("Save"));
  expect(onSave.mock.calls[0]![1]).toEqual({ description: "Counts" });
});

it("doesn't ask when another tab of the same agent is opened by its address", async () => {
  const drawn = draw(<Page agent={AGENT} />);
  await type(field(drawn, "Description"), "Counts");
  await gone("#/agents/1/tools");
  expect([confirmation.get(), route.get()]).toEqual([null, { name: "agent", id: "1", tab: "tools" }]);
  await gone("#/agents/2");
  expect(confirmation.get()).not.toBeNull();
  await act(async () => confirmation.get()!.answer(true));
});

it("keeps what was typed on another tab and when somebody else changes the agent", async () => {
  const drawn = draw(<Page agent={AGENT} />);
  await type(field(drawn, "Description"), "Counts");
  await click(drawn.named("Other"));
  await click(drawn.named("General"));
  drawn.again(<Page agent={{ ...AGENT, name: "Grace" }} />);
  expect([field(drawn, "Name").value, field(drawn, "Description").value]).toEqual(["Grace", "Counts"]);
});

it("shows an error at the field that it names, and tells any other", async () => {
  const drawn = draw(<Page agent={AGENT} />);
  await type(field(drawn, "Role"), "x");
  onSave.mockRejectedValueOnce(new ApiError(422, "INVALID_REQUEST", "Not this one.", null, "primaryRoleId"));
  await click(drawn.named("Save"));
  const role = field(drawn, "Role");
  expect([role.getAttribute("aria-invalid"), document.activeElement]).toEqual(["true", role]);
  expect(document.getElementById(role.getAttribute("aria-describedby")!.split(" ").at(-1)!)!.textContent).toBe("Not this one.");
  onSave.mockRejectedValueOnce(new ApiError(422, "INVALID_REQUEST", "Expected `str` <= 2.0.", null, "settings.primaryRoleId"));
  await type(role, "z");
  await click(drawn.named("Save"));
  expect(drawn.text).toContain("Must be at most 2.");
  await type(role, "y");
  expect(role.getAttribute("aria-invalid")).toBeNull();
  const other = new ApiError(412, "PRECONDITION_FAILED", "Changed.");
  onSave.mockRejectedValueOnce(other);
  await click(drawn.named("Save"));
  expect(onProblem).toHaveBeenCalledWith(other);
  expect(role.value).toBe("y");
});

it("asks before it is left with unsaved changes, and goes or stays as the user says", async () => {
  const drawn = draw(<Page agent={AGENT} />);
  const closing = () => !window.dispatchEvent(new Event("beforeunload", { cancelable: true }));
  expect(closing()).toBe(false);
  await type(field(drawn, "Name"), "Eve");
  expect(closing()).toBe(true);
  await gone("#/usage");
  expect([route.get().name, confirmation.get()?.title]).toEqual(["agent", "Discard changes?"]);
  await act(async () => confirmation.get()!.answer(false));
  expect([location.hash, route.get().name]).toEqual(["#/agents/1", "agent"]);
  await gone("#/usage");
  await act(async () => confirmation.get()!.answer(true));
  expect(route.get().name).toBe("usage");
});

it("takes going back, or on, as no answer: what is shown is always what the address says", async () => {
  const drawn = draw(<Page agent={AGENT} />);
  await type(field(drawn, "Name"), "Eve");
  await gone("#/usage");
  await gone("#/agents/1");
  expect([confirmation.get(), location.hash, route.get().name]).toEqual([null, "#/agents/1", "agent"]);
  await gone("#/usage");
  await gone("#/settings");
  await act(async () => confirmation.get()!.answer(true));
  expect([location.hash, route.get().name]).toEqual(["#/settings", "settings"]);
});

it("asks nothing where nothing was changed, nor after the form is gone", async () => {
  const stop = askBeforeLeaving(() => Promise.resolve(false));
  stop();
  await act(async () => go({ name: "settings" }));
  await gone("#/settings");
  expect([route.get().name, confirmation.get()]).toEqual(["settings", null]);
});
