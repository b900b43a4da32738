import { type AgentView } from "@threadkeep/client";
import { act } from "react";
import { expect, it } from "vitest";

import { AgentsPage } from "../../src/agents/agents-page";
import { agents } from "../../src/state/agents";
import { respond, draw, type } from "../draw";

const agent = (id: string, change: Partial<AgentView> = {}): AgentView => ({
  id,
  name: `Agent ${id}`,
  description: "",
  visibility: "public",
  isDefault: false,
  createdAt: "",
  updatedAt: "",
  ownerId: "bob",
  ...change,
});

async function settled() {
  const drawn = draw(<AgentsPage me={{ id: "alice", role: "user", installation: "a" }} onMenu={() => {}} />);
  for (let count = 0; count < 5; count++) await act(async () => {});
  return drawn;
}

async function shown(...items: AgentView[]) {
  act(() => agents.set([]));
  respond.mockImplementation(async () => Response.json({ items, nextCursor: null }));
  const drawn = await settled();
  const cards = () => [...drawn.place.querySelectorAll("li")].map((it) => it.querySelector("h2")!.textContent);
  return { drawn, cards };
}

it("says whose an agent is, who can use it and which one is the default", async () => {
  const { drawn } = await shown(
    agent("1", { ownerId: null, isDefault: true }),
    agent("2", { ownerId: "alice", visibility: "private" }),
    agent("3"),
  );
  const about = [...drawn.place.querySelectorAll("li")].map((it) => [
    it.querySelector(".facts-line")!.textContent,
    it.querySelector(".badge")?.textContent,
  ]);
  expect(about).toEqual([
    ["Built in Everyone on this server", "Default"],
    ["You Private", undefined],
    ["bob Everyone on this server", undefined],
  ]);
});

it("opens the settings by the name for those who may change them, and a conversation for others", async () => {
  const { drawn } = await shown(agent("1", { settings: {} as AgentView["settings"] }), agent("2"));
  const opened = [...drawn.place.querySelectorAll("h2 a")].map((it) => it.getAttribute("href"));
  expect(opened).toEqual(["#/agents/1", "#/new/2"]);
});

it("can be filtered where there are many", async () => {
  const few = await shown(...["1", "2"].map((id) => agent(id)));
  expect(few.drawn.place.querySelector("input")).toBeNull();
  const { drawn, cards } = await shown(...[..."123456789"].map((id) => agent(id, id === "4" ? { description: "Tax law" } : {})));
  expect(cards()).toHaveLength(9);
  await type(drawn.find<HTMLInputElement>("input"), "law agent");
  expect(cards()).toEqual(["Agent 4"]);
  await type(drawn.find<HTMLInputElement>("input"), "nothing like it");
  expect([cards(), drawn.text.includes("No results")]).toEqual([[], true]);
});

it("says that the agents could not be read, and tries again", async () => {
  act(() => agents.set([]));
  respond.mockImplementationOnce(async () => new Response("", { status: 502 }));
  const drawn = await settled();
  expect(drawn.find("[role=alert]").textContent).toBe("Can’t reach the server. Retry");
});
