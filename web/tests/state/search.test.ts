import { type ConversationView, type SearchHitView } from "@threadkeep/client";
import { expect, it } from "vitest";

import { grouped } from "../../src/state/search";

const known = (id: string, title: string) => ({ id, title }) as ConversationView;
const hit = (conversationId: string, messageId: string | null, title = "Other") =>
  ({ conversationId, messageId, title }) as SearchHitView;

it("shows each conversation once, with its messages below it", () => {
  const found = grouped("tea", [], [hit("c1", "m3"), hit("c2", "m2"), hit("c1", "m1")]);
  expect(found.map((it) => [it.conversationId, it.hits.map(({ messageId }) => messageId)])).toEqual([
    ["c1", ["m3", "m1"]],
    ["c2", ["m2"]],
  ]);
});

it("shows titles that match first, those the server found beyond the list too", () => {
  const listed = [known("c3", "Green TEA"), known("c4", "Coffee")];
  const found = grouped("tea", listed, [hit("c1", "m1"), hit("c5", null, "Tea set"), hit("c3", "m9")]);
  expect(found.map((it) => [it.conversationId, it.title, it.hits.length])).toEqual([
    ["c3", "Green TEA", 1],
    ["c5", "Tea set", 0],
    ["c1", "Other", 1],
  ]);
});
