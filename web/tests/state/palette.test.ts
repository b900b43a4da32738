import { type ConversationView, type SearchHitView } from "@threadkeep/client";
import { expect, it } from "vitest";

import { conversationChoices, matching, type Choice } from "../../src/state/palette";

const choice = (label: string): Choice => ({ id: label, label, run: () => {} });
const group = (...labels: string[]) => [{ label: "Some", choices: labels.map(choice) }];
const labels = (text: string, ...of: string[]) => matching(group(...of), text).flatMap((it) => it.choices.map(({ label }) => label));

it("offers what fits best first", () => {
  expect(labels("sales", "My old sales", "Wholesales", "Sales in May", "Cats")).toEqual(["Sales in May", "My old sales", "Wholesales"]);
  expect(labels("may sal", "Sales in May", "May")).toEqual(["Sales in May"]);
  expect(labels("x", "Cats")).toEqual([]);
});

it("offers everything, though not too much, before anything is typed", () => {
  expect(labels(" ", ...Array.from({ length: 30 }, (_, index) => `${index}`))).toHaveLength(12);
});

it("begins with the kind that fits best", () => {
  const groups = [
    { label: "Actions", choices: [choice("Archived conversations")] },
    { label: "Conversations", choices: [choice("Hi")] },
  ];
  expect(matching(groups, "hi").map(({ label }) => label)).toEqual(["Conversations", "Actions"]);
  expect(matching(groups, "").map(({ label }) => label)).toEqual(["Actions", "Conversations"]);
});

it("names a conversation once, whether the list has it or the server found it", () => {
  const listed = [{ id: "a", title: "Apples" }] as ConversationView[];
  const found = [
    { conversationId: "a", title: "Apples" },
    { conversationId: "b", title: null },
    { conversationId: "b", title: null },
  ] as SearchHitView[];
  const gone: unknown[] = [];
  const choices = conversationChoices(listed, found, "Untitled", (route) => gone.push(route));
  expect(choices.map(({ label }) => label)).toEqual(["Apples", "Untitled"]);
  choices[1]!.run();
  expect(gone).toEqual([{ name: "conversation", id: "b" }]);
});

it("offers what the server found by a message, below what fits by its title", () => {
  const listed = [{ id: "a", title: "Apples" }, { id: "z", title: "Zebra" }] as ConversationView[];
  const found = [{ conversationId: "a", title: "Apples" }] as SearchHitView[];
  const groups = [{ label: "Some", choices: conversationChoices(listed, found, "Untitled", () => {}) }];
  expect(matching(groups, "zebra")[0]!.choices.map(({ label }) => label)).toEqual(["Zebra", "Apples"]);
});
