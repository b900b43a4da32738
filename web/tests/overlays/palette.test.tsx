import { Unreachable, type AgentView, type MeView, type SearchHitView } from "@threadkeep/client";
import { act } from "react";
import { beforeEach, expect, it, vi } from "vitest";

import { api } from "../../src/api/api";
import { Palette } from "../../src/overlays/palette";
import { agents } from "../../src/state/agents";
import { conversations } from "../../src/state/front-end";
import { setLanguage } from "../../src/state/preferences";
import { session } from "../../src/state/session";
import { click, respond, draw, press, seen, type, type Drawn } from "../draw";

const hit = (title: string): SearchHitView => ({
  conversationId: title,
  agentId: "a",
  title,
  messageId: "m",
  seq: 1,
  role: "user",
  snippet: `about ${title}`,
  highlights: [],
  onPath: true,
  createdAt: "2026-03-10T09:00:00Z",
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
const titles = (drawn: Drawn) => [...drawn.place.querySelectorAll("[role=option] .title")].map((it) => it.textContent);

/** The palette after a text was typed and the server has responded. */
async function searched(text: string): Promise<[Drawn, HTMLInputElement]> {
  const drawn = draw(<Palette />);
  const field = drawn.find<HTMLInputElement>("[role=combobox]");
  await type(field, text);
  await asked(text);
  return [drawn, field];
}

it("keeps what it shows until there is something else", async () => {
  found.set("tax", [hit("Money")]);
  const [drawn, field] = await searched("tax");
  expect(titles(drawn)).toEqual(["Money"]);
  await type(field, "zebra");
  expect([titles(drawn), drawn.find("[role=listbox]").getAttribute("aria-busy")]).toEqual([["Money"], "true"]);
  found.set("zebr", []);
  await type(field, "zebr");
  await asked("zebr");
  expect([titles(drawn), drawn.find("[role=status]").textContent]).toEqual([[], "No results"]);
});

it("says that each word must occur, and leads out of filters that leave nothing", async () => {
  found.set("rye water", []);
  agents.set([{ id: "a", name: "Harbour" } as AgentView]);
  const [drawn, field] = await searched("rye water");
  const status = () => drawn.find("[role=status]").textContent;
  expect(status()).toBe("No conversation has all of these words");
  await click(drawn.named("Agent: Any agent"));
  await click([...drawn.place.querySelectorAll<HTMLElement>("[role=menuitemradio]")].at(-1)!);
  await seen(() => expect(status()).toBe("No conversation within these filters has all of these words"));
  await click(drawn.named("Search without filters"));
  await seen(() => expect(status()).toBe("No conversation has all of these words"));
  expect(document.activeElement).toBe(field);
});

it("shows a message that was found as text, with its agent, its date and the match", async () => {
  agents.set([{ id: "a", name: "Harbour" } as AgentView]);
  const before = "x".repeat(60);
  found.set("tax", [{ ...hit("Money"), snippet: `${before}tax and more`, highlights: [{ begin: 60, end: 63 }] }]);
  const [drawn] = await searched("tax");
  expect(drawn.find(".snippet").textContent).toBe(`…${"x".repeat(40)}tax and more`);
  expect(drawn.find(".snippet mark").textContent).toBe("tax");
  expect(drawn.find("[role=option] small").textContent).toBe("Harbour · Mar 10, 2026");
});

it("shows further messages of a conversation below its first", async () => {
  found.set("tax", [hit("Money"), { ...hit("Money"), messageId: "m2", seq: 2 }, hit("Car")]);
  const [drawn] = await searched("tax");
  expect([...drawn.place.querySelectorAll("[role=option]")].map((it) => it.classList.contains("further"))).toEqual([false, true, false]);
  expect(titles(drawn)).toEqual(["Money", "Car"]);
});

it("searches within an agent's conversations and a period, and nothing else then", async () => {
  agents.set([{ id: "a1", name: "Taxman", ownerId: null } as AgentView]);
  found.set("tax", [hit("Money")]);
  const [drawn] = await searched("tax");
  await click(drawn.named("Agent: Any agent"));
  await click(drawn.named("Taxman"));
  await click(drawn.named("Date: Any time"));
  await click(drawn.named("Last 7 days"));
  const params = () => respond.mock.calls.at(-1)![0].searchParams;
  await act(() => vi.waitFor(() => expect([params().get("agentId"), params().has("from"), params().has("to")]).toEqual(["a1", true, false])));
  expect(titles(drawn)).toEqual(["Money"]);
  await click(drawn.named("Clear filters"));
  await act(() => vi.waitFor(() => expect([params().has("agentId"), params().has("from")]).toEqual([false, false])));
  expect(titles(drawn)).toEqual(["Chat with Taxman", "Money"]);
});

it.each([
  ["cost", "Usage"],
  ["price", "Usage"],
  ["money", "Usage"],
  ["spend", "Usage"],
  ["price", "Models"],
  ["model", "Models"],
  ["provider", "Models"],
  ["key", "Models"],
  ["key", "API keys"],
  ["usage", "Usage"],
  ["permissions", "Harbour: Permissions"],
  ["tools", "Harbour: Permissions"],
  ["forbid a tool", "Harbour: Permissions"],
  ["deny", "Harbour: Permissions"],
  ["tool", "Harbour: Tools"],
  ["harbour set", "Harbour: Settings"],
  ["instructions", "Harbour: Prompt"],
  ["instructions", "Memory and your instructions"],
  ["remember", "Memory and your instructions"],
  ["share", "Share a conversation"],
  ["link", "Share a conversation"],
  ["import", "Import from ChatGPT or Claude"],
  ["ChatGPT", "Import from ChatGPT or Claude"],
  ["claude", "Import from ChatGPT or Claude"],
  ["禁止工具", "Harbour: Permissions"],
  ["导入", "Import from ChatGPT or Claude"],
  ["记住", "Memory and your instructions"],
  ["分享", "Share a conversation"],
  ["费用", "Usage"],
])("finds by %s what is called %s", async (text, label) => {
  session.set({ state: "in", me: { id: "me", role: "admin" } as MeView });
  agents.set([{ id: "a", name: "Harbour", ownerId: "me", settings: {} } as AgentView, { id: "b", name: "Else", ownerId: "other" } as AgentView]);
  found.set(text, []);
  const [drawn] = await searched(text);
  expect(titles(drawn)).toContain(label);
  expect(titles(drawn).filter((it) => it?.startsWith("Else:"))).toEqual([]);
});

it("finds by Chinese words, and offers models only to who can connect them", async () => {
  setLanguage("zh");
  session.set({ state: "in", me: { id: "me", role: "admin" } as MeView });
  found.set("价格", []);
  const [drawn] = await searched("价格");
  expect(titles(drawn)).toEqual(["用量", "模型"]);
  await act(async () => session.set({ state: "in", me: { id: "me", role: "user" } as MeView }));
  expect(titles(drawn)).toEqual(["用量"]);
  setLanguage("en");
});

it("says that the search failed, and not that there is nothing", async () => {
  found.set("tax", "away");
  const [drawn] = await searched("tax");
  expect(drawn.find("[role=status]").textContent).toBe("Can’t reach the server.");
});

it("keeps what was chosen when the server finds more", async () => {
  agents.set([{ id: "a1", name: "Taxman", ownerId: null } as AgentView]);
  found.set("tax", [hit("Taxes in May")]);
  const [drawn, field] = await searched("tax");
  expect(titles(drawn)).toEqual(["Taxes in May", "Chat with Taxman"]);
  await press(field, "ArrowDown");
  const chosen = () => drawn.find("[aria-selected=true] .title").textContent;
  expect(chosen()).toBe("Chat with Taxman");
  const more = [{ id: "x", title: "Tax advice", agentId: "a1", updatedAt: "2026-03-10T09:00:00Z" }];
  await act(async () => conversations.state.set({ items: more as never, nextCursor: null, state: "ready" }));
  expect(chosen()).toBe("Chat with Taxman");
});

it("takes a response that is no JSON for that of somebody else", async () => {
  respond.mockImplementation(async () => new Response("<h1>Sign in</h1>"));
  await expect(api.get("/api/agents")).rejects.toBeInstanceOf(Unreachable);
});
