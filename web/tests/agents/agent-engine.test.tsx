import { act } from "react";
import { expect, it } from "vitest";

import { AgentEngine } from "../../src/agents/agent-engine";
import { AgentGeneral } from "../../src/agents/agent-general";
import { draw, respond } from "../draw";

it.each([
  ["of a config", { kind: "config" }, ""],
  ["that is connected", { kind: "code", key: "orders", version: 3, status: "ready", workers: 2 }, "in codeordersversion 32 connected"],
  ["that is gone", { kind: "code", key: "orders", version: 3, status: "absent", workers: 0 }, "in codeordersversion 3its program isn’t connected"],
  ["of somebody else", { kind: "code", status: "ready" }, "in codeconnected"],
] as const)("tells what runs an agent: %s", (_, engine, expected) => {
  expect(draw(<AgentEngine agent={{ engine }} />).place.textContent).toBe(expected);
});

it("greys the fields that an agent's code declares", async () => {
  respond.mockImplementation(async () => Response.json({ items: [] }));
  const agent = { name: "Orders", description: "Refunds.", settings: { models: [], fallbackModels: [] }, readOnly: ["name", "description", "settings.starters", "model"] };
  const { place } = draw(<AgentGeneral agent={agent} action="Save" onSave={async () => {}} onProblem={() => {}} />);
  await act(async () => {});
  const greyed = [...place.querySelectorAll(".field")].filter((it) => it.querySelector("input, textarea, select")?.matches(":disabled"));
  expect(greyed.map((it) => [it.querySelector("label")!.textContent, it.querySelector(".hint")!.textContent])).toEqual([
    ["Name", "Declared in code."],
    ["Description", "Declared in code."],
    ["Starter prompts", "Declared in code."],
    ["Model", "Declared in code."],
  ]);
});
