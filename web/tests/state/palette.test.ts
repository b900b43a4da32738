import { type SearchHitView } from "@threadkeep/client";
import { expect, it } from "vitest";

import { conversationChoices, matching, type Choice } from "../../src/state/palette";
import { type Found } from "../../src/state/search";

const choice = (label: string): Choice => ({ id: label, label, run: () => {} });
const group = (...labels: string[]) => [{ label: "Some", choices: labels.map(choice) }];
const labels = (text: string, ...of: string[]) => matching(group(...of), text).flatMap((it) => it.choices.map(({ label }) => label));

it("offers what fits best first", () => {
  expect(labels("sales", "My old sales", "Wholesales", "Sales in May", "Cats")).toEqual(["Sales in May", "My old sales", "Wholesales"]);
  expect(labels("may sal", "Sales in May", "May")).toEqual(["Sales in May"]);
  expect(labels("x", "Cats")).toEqual([]);
});

it("finds by what else people call it, after what has the word in its label", () => {
  const choices = [{ ...choice("Usage"), keywords: "costs money" }, choice("Cost of tea"), choice("Cats")];
  const fitting = (text: string) => matching([{ label: "Some", choices }], text).flatMap((it) => it.choices.map(({ label }) => label));
  expect(fitting("cost")).toEqual(["Cost of tea", "Usage"]);
  expect(fitting("money cost")).toEqual(["Usage"]);
  expect(fitting("oney")).toEqual([]);
});

it("offers everything, though not too much, before anything is typed", () => {
  expect(labels(" ", ...Array.from({ length: 30 }, (_, index) => `${index}`))).toHaveLength(6);
});

it("begins with the kind that fits best", () => {
  const groups = [
    { label: "Actions", choices: [choice("Archived conversations")] },
    { label: "Conversations", choices: [choice("Hi")] },
  ];
  expect(matching(groups, "hi").map(({ label }) => label)).toEqual(["Conversations", "Actions"]);
  expect(matching(groups, "").map(({ label }) => label)).toEqual(["Actions", "Conversations"]);
});

const about = (agentId: string, at: string) => `${agentId}, ${at}`;
const message = (id: string, onPath = true) => ({ conversationId: "c", messageId: id, seq: 7, createdAt: "then", onPath }) as SearchHitView;
const offering = { untitled: "Untitled", about, unfolded: new Set<string>(), countMore: (count: number) => `${count} more`, onUnfold: () => {}, go: () => {} };
const found = (title: string | null, ...hits: SearchHitView[]): Found => ({ conversationId: "c", agentId: "a", title, at: "now", hits });

it("leads to the message that was found, and to a conversation where only its title was", () => {
  const gone: unknown[] = [];
  const talks = [found(null), found("Tea", message("m1"), message("m2", false))];
  const choices = conversationChoices(talks, { ...offering, go: (route) => gone.push(route) });
  expect(choices.map((it) => [it.label, it.about, it.isFurther])).toEqual([
    ["Untitled", "a, now", undefined],
    ["Tea", "a, then", false],
    ["Tea", "a, then", true],
  ]);
  for (const it of choices) it.run();
  expect(gone).toEqual([
    { name: "conversation", id: "c" },
    { name: "conversation", id: "c", seq: 7, branchId: undefined },
    { name: "conversation", id: "c", seq: 7, branchId: "m2" },
  ]);
});

it("offers three messages of a conversation and then the others, below what fits by its title", () => {
  const hits = ["m1", "m2", "m3", "m4"].map((id) => message(id));
  const shown = (unfolded: string[], onUnfold = (..._: string[]) => {}) => {
    const both = [found("Apples", ...hits), { ...found("Zebra"), conversationId: "z" }];
    const talks = conversationChoices(both, { ...offering, unfolded: new Set(unfolded), onUnfold });
    return matching([{ label: "Some", choices: talks }], "zebra")[0]!.choices;
  };
  expect(shown([]).map(({ label, more }) => more ?? label)).toEqual(["Zebra", "Apples", "Apples", "Apples", "1 more"]);
  const unfolded: unknown[] = [];
  shown([], (...which) => unfolded.push(which)).at(-1)!.run();
  expect(unfolded).toEqual([["c", "c/m4"]]);
  expect(shown(["c"]).map(({ hit }) => hit?.messageId)).toEqual([undefined, "m1", "m2", "m3", "m4"]);
});
