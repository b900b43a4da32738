import { type AgentDetailView, type AgentView } from "@threadkeep/client";
import { act } from "react";
import { expect, it, vi } from "vitest";

import { AgentOthers } from "../../src/agents/agent-others";
import { agents } from "../../src/state/agents";
import { draw } from "../draw";

const listed = (id: string, name: string, more: Partial<AgentView> = {}) => ({ id, name, description: "", ...more }) as AgentView;

function chosenAfter(chosen: string[], ...clicks: string[]): string[][] {
  agents.set([listed("office", "Office"), listed("lawyer", "Lawyer"), listed("a1", "Billing", { engine: { kind: "code", key: "billing" } })]);
  const onChoose = vi.fn<(agents: string[]) => void>();
  const agent = { ...listed("office", "Office"), settings: { agents: chosen } } as unknown as AgentDetailView;
  const { place } = draw(<AgentOthers agent={agent} onChoose={onChoose} />);
  const rows = [...place.querySelectorAll("label")];
  expect(rows.map((it) => it.querySelector("span")!.textContent)).not.toContain("Office");
  for (const name of clicks) act(() => rows.find((it) => it.textContent!.startsWith(name))!.querySelector("input")!.click());
  return onChoose.mock.calls.map(([ids]) => ids);
}

it("adds an agent by its id, and removes one that is named by its key", () => {
  expect(chosenAfter(["billing"], "Lawyer", "Billing")).toEqual([["billing", "lawyer"], []]);
});

it("keeps what is gone until it is removed", () => {
  expect(chosenAfter(["0192-gone"], "Lawyer", "0192-gone")).toEqual([["0192-gone", "lawyer"], []]);
});
