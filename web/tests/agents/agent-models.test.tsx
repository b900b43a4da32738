import { act } from "react";
import { expect, it, vi } from "vitest";

import { AgentGeneral } from "../../src/agents/agent-general";
import { click, draw, respond, type, type Drawn } from "../draw";

const model = (id: string, isDefault = false) => ({ id, name: id.split("/")[1], default: isDefault });
const LISTED = [model("a/one", true), model("a/two"), model("b/three")];

async function shown(listed: readonly unknown[], settings = {}) {
  respond.mockImplementation(async () => Response.json({ items: listed }));
  const onSave = vi.fn(async () => {});
  const agent = { name: "Handy", settings: { models: [], fallbackModels: [], ...settings } };
  const drawn = draw(<AgentGeneral agent={agent} action="Save" onSave={onSave} onProblem={() => {}} />);
  await act(async () => {});
  await act(async () => {});
  return { drawn, onSave };
}

/** What a label names. */
function field<E extends HTMLElement>(drawn: Drawn, label: string): E {
  const found = [...drawn.place.querySelectorAll("label")].find((it) => it.textContent === label);
  return document.getElementById(found!.htmlFor) as E;
}

async function choose(select: HTMLSelectElement, text: string): Promise<void> {
  const option = [...select.options].find((it) => it.text === text);
  select.value = option!.value;
  await act(async () => void select.dispatchEvent(new Event("change", { bubbles: true })));
}

/** Takes an item of a field's menu. */
async function pick(button: HTMLButtonElement, text: string): Promise<void> {
  await click(button);
  await click(itemsOf().find((it) => it.textContent === text)!);
}

const itemsOf = () => [...document.querySelectorAll<HTMLButtonElement>(".menu button")];

const changed = (onSave: ReturnType<typeof vi.fn>) => onSave.mock.calls[0]![1] as unknown;

it("chooses an agent's model among those that are listed, or by any name", async () => {
  const { drawn, onSave } = await shown(LISTED);
  const own = field<HTMLButtonElement>(drawn, "Model");
  await click(own);
  expect(itemsOf().map((it) => it.textContent)).toEqual(["Server default (one)", "a/one", "a/two", "b/three", "Another name…"]);
  await click(own);
  await pick(own, "a/two");
  expect(own.textContent).toBe("a/two");
  await pick(own, "Another name…");
  await type(field<HTMLInputElement>(drawn, "Name of the model"), "b/unlisted");
  await click(drawn.named("Save"));
  expect(changed(onSave)).toEqual({ model: "b/unlisted" });
});

it("takes any name where no model is listed", async () => {
  const { drawn, onSave } = await shown([]);
  await type(field<HTMLInputElement>(drawn, "Model"), "one");
  await choose(field<HTMLSelectElement>(drawn, "Users can choose"), "This and others you select");
  await type(field<HTMLTextAreaElement>(drawn, "Models that users can choose"), "two\nthree\n");
  await type(field<HTMLTextAreaElement>(drawn, "Fallback models"), "two");
  await click(drawn.named("Save"));
  expect(changed(onSave)).toEqual({ model: "one", settings: { models: ["two", "three"], fallbackModels: ["two"] } });
});

it("offers users the agent's own model, some or any", async () => {
  const { drawn, onSave } = await shown(LISTED, { models: ["c/gone"] });
  const offer = field<HTMLSelectElement>(drawn, "Users can choose");
  expect(offer.selectedOptions[0]!.text).toBe("This and others you select");
  const boxes = () => [...drawn.place.querySelectorAll<HTMLInputElement>(".model-choice input")];
  expect(boxes().map((it) => [it.labels![0]!.textContent, it.checked])).toEqual([["a/two", false], ["b/three", false], ["c/gone", true]]);
  await choose(offer, "Any model");
  expect(boxes()).toEqual([]);
  await choose(offer, "This and others you select");
  await click(boxes()[1]!);
  await click(drawn.named("Save"));
  expect(changed(onSave)).toEqual({ settings: { models: ["b/three"] } });
});

it("keeps fallbacks in order, and has nothing to save once they are as before", async () => {
  const { drawn, onSave } = await shown(LISTED, { fallbackModels: ["a/two"] });
  const add = field<HTMLButtonElement>(drawn, "Fallback models");
  await pick(add, "b/three");
  expect(add.disabled).toBe(true);
  await click(drawn.named("Remove b/three"));
  expect(document.activeElement).toBe(add);
  expect(drawn.named<HTMLButtonElement>("Save").disabled).toBe(true);
  await pick(add, "b/three");
  await click(drawn.named("Move b/three up"));
  await click(drawn.named("Move b/three up"));
  await click(drawn.named("Save"));
  expect(changed(onSave)).toEqual({ settings: { fallbackModels: ["b/three", "a/two"] } });
});
