import { type MeView, type RunningTurnView, type WorkerView } from "@threadkeep/client";
import { act } from "react";
import { beforeEach, expect, it } from "vitest";

import { age } from "../../src/running/age";
import { RunningPage } from "../../src/running/running-page";
import { loadWords } from "../../src/words";
import { draw, respond, seen } from "../draw";

const ADMIN = { id: "root", role: "admin" } as MeView;
const NOW = new Date().toISOString();
const NODE = "01a1f21a-7463-72a5-b874-f62b2f96c484";

const TURN: RunningTurnView = {
  id: "1",
  conversationId: "2",
  userId: "ann",
  agentId: "3",
  nodeId: NODE,
  model: null,
  startedAt: NOW,
  state: "running",
  agent: "orders",
  codeVersion: 2,
  step: "refund",
  stepSince: NOW,
  worker: NODE,
  waitsFor: null,
};
const WAITING: RunningTurnView = { ...TURN, id: "4", nodeId: null, state: "waiting", step: null, stepSince: null, worker: null, waitsFor: "worker" };
const WORKER: WorkerView = {
  id: NODE,
  name: "host",
  node: NODE,
  sdk: "threadkeep 1.0.0",
  agents: [{ key: "orders", version: 2 }],
  capacity: 20,
  running: 1,
  connectedAt: NOW,
  lastBeatAt: NOW,
  blockedMs: 12_000,
  isDraining: false,
};

let asked: string[] = [];
let turns: RunningTurnView[] = [];
let workers: WorkerView[] = [];

beforeEach(async () => {
  await loadWords();
  asked = [];
  respond.mockImplementation(async (url) => {
    asked.push(url.pathname + url.search);
    return Response.json(url.pathname.endsWith("/workers") ? { items: workers } : { items: turns, nextCursor: null });
  });
});

it("shows what each turn does, what it waits for, and where it runs", async () => {
  [turns, workers] = [[TURN, WAITING], [WORKER]];
  const { place } = draw(<RunningPage me={ADMIN} onMenu={() => {}} />);
  await seen(() => expect(place.querySelectorAll("table")).toHaveLength(2));
  const [running, waiting, worker] = [...place.querySelectorAll("tbody tr")].map((it) => [...it.children].map((cell) => cell.textContent!));
  expect(running!.slice(1, 4)).toEqual(["Running", expect.stringMatching(/^refundfor \d+ s$/), "host2f96c484"]);
  expect(waiting!.slice(1, 4)).toEqual(["Waits for its program", "–", "–"]);
  expect(worker!.slice(0, 4)).toEqual(["host2f96c484 · threadkeep 1.0.0", "orders version 2", "1 of 20", "Blocked for 12 s"]);
});

it("asks for the turns that are wanted", async () => {
  [turns, workers] = [[], []];
  const drawn = draw(<RunningPage me={ADMIN} onMenu={() => {}} />);
  await seen(() => expect(drawn.text).toContain("No turn runs or waits."));
  expect(drawn.text).toContain("No process runs agents in code.");
  const select = drawn.find<HTMLSelectElement>("select");
  select.value = "person";
  await act(async () => void select.dispatchEvent(new Event("change", { bubbles: true })));
  await seen(() => expect(asked).toContain("/api/admin/turns?limit=200&waitsFor=person"));
});

it("is for administrators", () => {
  const drawn = draw(<RunningPage me={{ ...ADMIN, role: "user" }} onMenu={() => {}} />);
  expect(drawn.text).toContain("Only an administrator");
  expect(asked).toEqual([]);
});

it("says how long something has lasted", () => {
  expect([0, 61_000, 2 * 3_600_000, 49 * 3_600_000].map((it) => age(it, "en"))).toEqual(["0 s", "1 min 1 s", "2 hours", "2 days"]);
});
