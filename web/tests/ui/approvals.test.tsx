import { type ApprovalView, type ConversationView } from "@threadkeep/client";
import { act } from "react";
import { afterEach, expect, it } from "vitest";

import { approvals, conversations } from "../../src/state/front-end";
import { ApprovalsMenu } from "../../src/ui/approvals-menu";
import { respond, click, draw } from "../draw";

const open = (requestId: string, more: Partial<ApprovalView> = {}): ApprovalView => ({
  requestId,
  turnId: "t",
  conversationId: "c1",
  kind: "question",
  message: "Which one?",
  createdAt: "2026-01-01T00:00:00.000Z",
  expiresAt: "2026-01-08T00:00:00.000Z",
  ...more,
});
const responds = (...items: ApprovalView[]) => respond.mockImplementation(async () => Response.json({ items }));

afterEach(() => {
  act(() => approvals.items.set([]));
});

it("counts what waits, names it, and leads there", async () => {
  conversations.state.update((list) => ({ ...list, items: [{ id: "c1", title: "Tea" } as ConversationView] }));
  const drawn = draw(<ApprovalsMenu />);
  expect(drawn.text).toBe("");
  responds(open("r1"), open("r2", { kind: "tool", toolName: "order", server: "shop", conversationId: "c2" }));
  await act(approvals.refresh);
  expect(drawn.named("2 requests are waiting for you").textContent).toContain("2");
  await click(drawn.named("2 requests are waiting for you"));
  const [first, second] = [...drawn.place.querySelectorAll<HTMLElement>("[role=menuitem]")];
  expect([first!.textContent, second!.textContent]).toEqual(["Which one?Tea", "Allow order (shop)?New conversation"]);
  const card = document.body.appendChild(document.createElement("div"));
  card.dataset["request"] = "r2";
  card.tabIndex = -1;
  await click(second!);
  expect(location.hash).toBe("#/c/c2");
  expect(document.activeElement).toBe(card);
  card.remove();
  location.hash = "";
});

it("keeps what is known when it cannot be read", async () => {
  responds(open("r1"));
  await approvals.refresh();
  respond.mockImplementation(async () => new Response("{}", { status: 500 }));
  await approvals.refresh();
  expect(approvals.items.get()).toHaveLength(1);
});
