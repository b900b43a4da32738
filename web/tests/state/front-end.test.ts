import { FrontEnd } from "@threadkeep/client";
import { browserPlatform } from "@threadkeep/client/browser";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { api } from "../../src/api/api";
import { frontEnd, startFrontEnd } from "../../src/state/front-end";
import { respond } from "../draw";

/** Answers every list with nothing, and every stream with one that the test writes. */
let streams: ReadableStreamDefaultController<Uint8Array>[];
let resumed: (string | null)[];
let asked: string[];
let stop: () => void;

beforeEach(() => {
  streams = [];
  resumed = [];
  asked = [];
  respond.mockImplementation(async (url: URL, { headers }: RequestInit) => {
    const call = url.pathname.split("/api/").at(-1)!;
    if (call !== "me/events") {
      asked.push(call);
      return Response.json({ items: [], nextCursor: null });
    }
    resumed.push(new Headers(headers).get("Last-Event-ID"));
    return new Response(new ReadableStream({ start: (controller) => void streams.push(controller) }));
  });
});
afterEach(() => stop());

const happen = (type: string, id: string, more: object = {}) =>
  streams.at(-1)!.enqueue(new TextEncoder().encode(`id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ id, type, ...more })}\n\n`));

async function connected(): Promise<void> {
  stop = startFrontEnd({ id: "alice" });
  await vi.waitFor(() => expect(streams).toHaveLength(1));
  asked = [];
}

it("reads what something has happened to", async () => {
  await connected();
  happen("approval_opened", "a-1", { conversationId: "c" });
  await vi.waitFor(() => expect(asked).toContain("approvals"));
  happen("turn_ended", "a-2", { conversationId: "c" });
  await vi.waitFor(() => expect(asked).toContain("conversations"));
  happen("briefing_arrived", "a-3");
  await vi.waitFor(() => expect(asked).toContain("briefings"));
});

it("skips what it doesn't know, as from a newer server", async () => {
  await connected();
  for (const type of ["hologram_projected", "conversation", "_", ""]) happen(type, "a-1", { hologram: {} });
  happen("briefing_arrived", "a-2");
  await vi.waitFor(() => expect(asked).toContain("briefings"));
  expect(streams).toHaveLength(1);
});

it("reads once what happens at once", async () => {
  await connected();
  for (let n = 0; n < 20; n++) happen("turn_ended", `a-${n}`);
  happen("briefing_arrived", "a-20");
  await vi.waitFor(() => expect(asked).toContain("briefings"));
  expect(asked.filter((it) => it === "conversations").length).toBeLessThanOrEqual(2);
});

it("goes on after the last event when the connection breaks", async () => {
  await connected();
  happen("conversation_created", "a-7");
  await vi.waitFor(() => expect(asked).toContain("conversations"));
  streams[0]!.error(new Error("gone"));
  await vi.waitFor(() => expect(resumed).toEqual([null, "a-7"]), { timeout: 3000 });
});

it("tells other tabs, which open no stream of their own", async () => {
  const waiting: (() => Promise<void>)[] = [];
  const held = new Set<string>();
  vi.stubGlobal("navigator", {
    locks: {
      request: async (name: string, _: object, run: () => Promise<void>) => {
        if (held.has(name)) return void waiting.push(run);
        held.add(name);
        return run();
      },
    },
  });
  await connected();
  const leaveFirst = stop;
  const second = new FrontEnd({ api, platform: browserPlatform() });
  void second.start("alice");
  stop = () => (leaveFirst(), second.stop());
  const told: string[] = [];
  const forgets = [frontEnd, second].map(({ events }) => events.on((event) => told.push(event.id)));
  happen("turn_started", "a-1");
  // Both tabs are in this window: the one with the stream, and the one that it tells.
  await vi.waitFor(() => expect(told).toEqual(["a-1", "a-1"]));
  for (const forget of forgets) forget();
  expect(streams).toHaveLength(1);
  expect(waiting).toHaveLength(1);
});
