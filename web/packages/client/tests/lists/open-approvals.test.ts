import { expect, it } from "vitest";

import { type ApiClient } from "../../src/api-client.ts";
import { OpenApprovals } from "../../src/lists/open-approvals.ts";

/** A server whose responses come when the test says so. */
function server() {
  const answers: ((requestIds: string[]) => void)[] = [];
  const get = () =>
    new Promise((resolve) => {
      answers.push((requestIds) => resolve({ items: requestIds.map((requestId) => ({ requestId })) }));
    });
  const open = new OpenApprovals({ get } as unknown as ApiClient);
  return { open, answers, shown: () => open.items.get().map((it) => it.requestId) };
}

it("shows what a reader has waited for, although another has asked meanwhile", async () => {
  const { open, answers, shown } = server();
  const first = open.refresh();
  const second = open.refresh();
  answers[0]!(["a"]);
  await first;
  expect(shown()).toEqual(["a"]);
  answers[1]!(["a", "b"]);
  await second;
  expect(shown()).toEqual(["a", "b"]);
});

it("does not go back to an older response, nor to one of the user before", async () => {
  const { open, answers, shown } = server();
  const reads = [open.refresh(), open.refresh()];
  answers[1]!(["b"]);
  answers[0]!(["a"]);
  await Promise.all(reads);
  expect(shown()).toEqual(["b"]);
  const late = open.refresh();
  open.forget();
  answers[2]!(["c"]);
  await late;
  expect(shown()).toEqual([]);
});
