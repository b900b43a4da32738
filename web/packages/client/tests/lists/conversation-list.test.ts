import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { ApiClient } from "../../src/api-client";
import { ConversationList } from "../../src/lists/conversation-list";
import { type ConversationView } from "../../src/schema";

const respond = vi.fn<(url: URL, options: { method: string }) => Promise<Response>>();
const conversations = new ConversationList(new ApiClient({ baseUrl: "http://h", fetch: respond }));

const conversation = (id: string, more: Partial<ConversationView> = {}) =>
  ({ id, title: id, status: "active", pinned: false, updatedAt: `2026-01-0${id.at(-1)}`, ...more }) as ConversationView;

/** What the server has, and how it responds to a request that a test holds back. */
let kept: ConversationView[];
let nextCursor: string | null;
let held: (() => void)[];
let holds: boolean;

beforeEach(() => {
  conversations.forget();
  [kept, nextCursor, held, holds] = [[], null, [], false];
  respond.mockImplementation(async (url, { method }) => {
    if (method === "PATCH") return Response.json(kept[0]);
    const items = url.searchParams.get("pinned") ? kept.filter((it) => it.pinned) : kept;
    const page = Response.json({ items, nextCursor: url.searchParams.get("pinned") ? null : nextCursor });
    if (holds) await new Promise<void>((resolve) => held.push(resolve));
    return page;
  });
});
afterEach(() => conversations.forget());

const titles = () => conversations.state.get().items.map((it) => it.title);

/** Begins to read; what the server says then comes when the returned function is called. */
async function begin(): Promise<() => Promise<void>> {
  [held, holds] = [[], true];
  const reading = conversations.refresh();
  const responses = held;
  holds = false;
  return async () => {
    for (const tell of responses) tell();
    await reading;
  };
}

it("lets go of the oldest one when it is deleted elsewhere", async () => {
  kept = [conversation("c3"), conversation("c2"), conversation("c1")];
  await conversations.refresh();
  kept = kept.slice(0, 2);
  await conversations.refresh();
  expect(titles()).toEqual(["c3", "c2"]);
});

it("keeps what was scrolled to below the first page, but not what is known to be deleted", async () => {
  kept = [conversation("c3"), conversation("c2"), conversation("c1")];
  await conversations.refresh();
  [kept, nextCursor] = [[conversation("c3")], "more"];
  await conversations.refresh();
  expect(titles()).toEqual(["c3", "c2", "c1"]);
  conversations.drop("c1");
  expect(titles()).toEqual(["c3", "c2"]);
});

it("shows no older response after a newer one", async () => {
  kept = [conversation("c1", { title: "Old" })];
  const late = await begin();
  kept = [conversation("c1", { title: "New" })];
  await conversations.refresh();
  await late();
  expect(titles()).toEqual(["New"]);
});

it("reads again what was asked for before the user renamed one", async () => {
  kept = [conversation("c1", { title: "Old" })];
  await conversations.refresh();
  const late = await begin();
  kept = [conversation("c1", { title: "New" })];
  await conversations.change("c1", { title: "New" });
  await late();
  expect(titles()).toEqual(["New"]);
});

it("shows nothing of a user who has signed out", async () => {
  kept = [conversation("c1")];
  const late = await begin();
  conversations.forget();
  await late();
  expect(conversations.state.get()).toEqual({ items: [], nextCursor: null, state: "loading" });
});

it("shows the copy on this device while the server is away, and keeps what it says", async () => {
  const copies = { keep: vi.fn(), read: async <T>() => [conversation("c1")] as T, drop: vi.fn() };
  const list = new ConversationList(new ApiClient({ baseUrl: "http://h", fetch: respond }), copies);
  respond.mockRejectedValueOnce(new TypeError("offline"));
  await list.refresh();
  expect(list.state.get()).toMatchObject({ items: [{ id: "c1" }], state: "ready" });
  kept = [conversation("c3"), conversation("c2")];
  await list.refresh();
  expect(copies.keep).toHaveBeenLastCalledWith("/api/conversations", kept);
  list.drop("c3");
  expect(copies.drop).toHaveBeenCalledWith("/api/conversations/c3");
  expect(copies.keep).toHaveBeenLastCalledWith("/api/conversations", [kept[1]]);
});
