import { Unreachable, type AgentView, type SearchHitView } from "@threadkeep/client";
import { act } from "react";
import { beforeEach, expect, it, vi } from "vitest";

import { api } from "../../src/api/api";
import { Palette } from "../../src/overlays/palette";
import { SearchResults } from "../../src/sidebar/search-results";
import { agents } from "../../src/state/agents";
import { conversations } from "../../src/state/front-end";
import { respond, draw, press, type, type Drawn } from "../draw";

const hit = (title: string): SearchHitView => ({
  conversationId: title,
  agentId: "a",
  title,
  messageId: "m",
  seq: 1,
  role: "user",
  snippet: title,
  highlights: [],
  onPath: true,
  createdAt: "",
});

/** The server's responses by what was looked for; a query that is not there waits. */
const found = new Map<string, SearchHitView[] | "away">();

beforeEach(() => {
  found.clear();
  conversations.state.set({ items: [], nextCursor: null, state: "ready" });
  agents.set([]);
  respond.mockImplementation(async (url) => {
    const hits = found.get(url.searchParams.get("q")!);
    if (hits === "away") throw new TypeError("away");
    return hits ? Response.json({ items: hits, nextCursor: null }) : new Promise(() => {});
  });
});

/** Until the server was asked for a text, and has responded. */
const asked = (query: string) =>
  act(() => vi.waitFor(() => expect(respond.mock.calls.some(([url]) => url.searchParams.get("q") === query)).toBe(true)));
const titles = (drawn: Drawn) => [...drawn.place.querySelectorAll(".found .title, [role=option]")].map((it) => it.textContent);

it("shows no hits of other words while it searches, and those of fewer letters", async () => {
  found.set("tax", [hit("Money")]);
  const drawn = draw(<SearchResults query="tax" />);
  await asked("tax");
  drawn.again(<SearchResults query="taxes" />);
  expect(titles(drawn)).toEqual(["Money"]);
  drawn.again(<SearchResults query="zebra" />);
  expect([titles(drawn), drawn.find("[role=status]").textContent]).toEqual([[], "Loading…"]);
});

it("shows a match although much comes before it", async () => {
  const before = "x".repeat(60);
  found.set("tax", [{ ...hit("Money"), snippet: `${before}tax and more`, highlights: [{ begin: 60, end: 63 }] }]);
  const drawn = draw(<SearchResults query="tax" />);
  await asked("tax");
  expect(drawn.find(".snippet").textContent).toBe(`…${"x".repeat(24)}tax and more`);
  expect(drawn.find(".snippet mark").textContent).toBe("tax");
});

it("says that the search failed, and not that there is nothing", async () => {
  found.set("tax", "away");
  const drawn = draw(<SearchResults query="tax" />);
  await asked("tax");
  expect(drawn.find("[role=status]").textContent).toBe("Can’t reach the server.");
});

it("keeps what was chosen in the palette when the server finds more", async () => {
  agents.set([{ id: "a1", name: "Taxman" } as AgentView]);
  found.set("tax", [hit("Taxes in May")]);
  const drawn = draw(<Palette />);
  const field = drawn.find<HTMLInputElement>("input");
  await type(field, "tax");
  await asked("tax");
  expect(titles(drawn)).toEqual(["Taxes in May", "Chat with Taxman"]);
  await press(field, "ArrowDown");
  const chosen = () => drawn.find("[aria-selected=true]").textContent;
  expect(chosen()).toBe("Chat with Taxman");
  await act(async () => conversations.state.set({ items: [{ id: "x", title: "Tax advice" }] as never, nextCursor: null, state: "ready" }));
  expect(chosen()).toBe("Chat with Taxman");
});

it("does not offer in the palette what was found for other words", async () => {
  found.set("tax", [hit("Money")]);
  const drawn = draw(<Palette />);
  const field = drawn.find<HTMLInputElement>("input");
  await type(field, "tax");
  await asked("tax");
  expect(titles(drawn)).toEqual(["Money"]);
  found.set("zebra", []);
  await type(field, "zebra");
  expect([titles(drawn), drawn.find("[role=status]").textContent]).toEqual([[], "Loading…"]);
  await asked("zebra");
  expect(drawn.find("[role=status]").textContent).toBe("No results");
});

it("takes a response that is no JSON for that of somebody else", async () => {
  respond.mockImplementation(async () => new Response("<h1>Sign in</h1>"));
  await expect(api.get("/api/agents")).rejects.toBeInstanceOf(Unreachable);
});
