import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { ApiClient } from "../../src/api-client";
import { type TurnEvent } from "../../src/turn/events";
import { followTurn } from "../../src/turn/follow";

/** What the server sends in each connection, one after the other. */
let connections: (() => Response)[];
let resumed: (string | null)[];
let told: (number[] | string)[];

const event = (seq: number, type = "text") => `id: ${seq}\ndata: ${JSON.stringify({ seq, type, text: "" })}\n\n`;
const stream = (...events: string[]) => new Response(events.join(""));

const api = new ApiClient({ baseUrl: () => "http://h/", pause: async () => {} });
const follower = {
  onEvents: (events: TurnEvent[]) => told.push(events.map(({ seq }) => seq)),
  onLost: () => told.push("lost"),
  onBack: () => told.push("back"),
};
const follow = () => followTurn(api, "t", follower, new AbortController().signal);

beforeEach(() => {
  [connections, resumed, told] = [[], [], []];
  vi.stubGlobal("fetch", async (_: URL, { headers }: RequestInit) => {
    resumed.push(new Headers(headers).get("Last-Event-ID"));
    return connections.shift()!();
  });
});
afterEach(() => void vi.unstubAllGlobals());

it("continues after the last event when the connection is lost, and passes on each event once", async () => {
  const refused = () => {
    throw new TypeError("away");
  };
  connections = [() => stream(event(1), event(2)), refused, () => stream(event(2), event(3), event(4, "done"))];
  expect(await follow()).toBe("ended");
  expect(resumed).toEqual([null, "2", "2"]);
  expect(told).toEqual([[1, 2], "lost", "lost", "back", [3, 4]]);
});

it("ends where the server has no more events", async () => {
  connections = [() => new Response(null, { status: 204 })];
  expect(await follow()).toBe("ended");
});

it("says that the events were deleted", async () => {
  connections = [() => Response.json({ error: { code: "EVENTS_EXPIRED", message: "" } }, { status: 410 })];
  expect(await follow()).toBe("expired");
});
