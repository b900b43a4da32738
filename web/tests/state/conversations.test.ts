import { type ConversationView } from "@threadkeep/client";
import { afterEach, beforeEach, expect, it } from "vitest";

import {
  changeConversation,
  conversations,
  dropConversation,
  forgetConversations,
  refreshConversations,
} from "../../src/state/conversations";
import { respond } from "../draw";

const conversation = (id: string, more: Partial<ConversationView> = {}) =>
  ({ id, title: id, status: "active", pinned: false, updatedAt: `2026-01-0${id.at(-1)}`, ...more }) as ConversationView;

/** What the server has, and how it responds to a request that a test holds back. */
let kept: ConversationView[];
let nextCursor: string | null;
let held: (() => void)[];
let holds: boolean;

beforeEach(() => {
  forgetConversations();
  [kept, nextCursor, held, holds] = [[], null, [], false];
  respond.mockImplementation(async (url, { method }) => {
    if (method === "PATCH") return Response.json(kept[0]);
    const items = url.searchParams.get("pinned") ? kept.filter((it) => it.pinned) : kept;
    const page = Response.json({ items, nextCursor: url.searchParams.get("pinned") ? null : nextCursor });
    if (holds) await new Promise<void>((resolve) => held.push(resolve));
    return page;
  });
});
afterEach(forgetConversations);

const titles = () => conversations.get().items.map((it) => it.title);

/** Begins to read; what the server says then comes when the returned function is called. */
async function begin(): Promise<() => Promise<void>> {
  [held, holds] = [[], true];
  const reading = refreshConversations();
  const responses = held;
  holds = false;
  return async () => {
    for (const tell of responses) tell();
    await reading;
  };
}

it("lets go of the oldest one when it is deleted elsewhere", async () => {
  kept = [conversation("c3"), conversation("c2"), conversation("c1")];
  await refreshConversations();
  kept = kept.slice(0, 2);
  await refreshConversations();
  expect(titles()).toEqual(["c3", "c2"]);
});

it("keeps what was scrolled to below the first page, but not what is known to be deleted", async () => {
  kept = [conversation("c3"), conversation("c2"), conversation("c1")];
  await refreshConversations();
  [kept, nextCursor] = [[conversation("c3")], "more"];
  await refreshConversations();
  expect(titles()).toEqual(["c3", "c2", "c1"]);
  dropConversation("c1");
  expect(titles()).toEqual(["c3", "c2"]);
});

it("shows no older response after a newer one", async () => {
  kept = [conversation("c1", { title: "Old" })];
  const late = await begin();
  kept = [conversation("c1", { title: "New" })];
  await refreshConversations();
  await late();
  expect(titles()).toEqual(["New"]);
});

it("reads again what was asked for before the user renamed one", async () => {
  kept = [conversation("c1", { title: "Old" })];
  await refreshConversations();
  const late = await begin();
  kept = [conversation("c1", { title: "New" })];
  await changeConversation("c1", { title: "New" });
  await late();
  expect(titles()).toEqual(["New"]);
});

it("shows nothing of a user who has signed out", async () => {
  kept = [conversation("c1")];
  const late = await begin();
  forgetConversations();
  await late();
  expect(conversations.get()).toEqual({ items: [], nextCursor: null, state: "loading" });
});
