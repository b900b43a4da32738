import { type AgentView, type ApprovalView, type ConversationView } from "@threadkeep/client";
import { act } from "react";
import { afterEach, beforeAll, expect, it, vi } from "vitest";

import { LazyApprovalsBell, loadRequests } from "../../../src/chat/requests/lazy-request";
import { agents } from "../../../src/state/agents";
import { allowedToolsOf } from "../../../src/state/allowed-tools";
import { approvals, conversations } from "../../../src/state/front-end";
import { minute } from "../../../src/state/minute";
import { toasts } from "../../../src/ui/toasts";
import { loadChunk } from "../../../src/ui/use-chunk";
import { respond, click, draw } from "../../draw";

const open = (requestId: string, more: Partial<ApprovalView> = {}): ApprovalView => ({
  requestId,
  turnId: "t",
  conversationId: "c1",
  conversationTitle: "Tea, once",
  agentId: "a1",
  kind: "question",
  message: "Which one?",
  createdAt: "2026-01-01T00:00:00.000Z",
  expiresAt: "2026-01-08T00:00:00.000Z",
  ...more,
});
const responds = (...items: ApprovalView[]) => respond.mockImplementation(async () => Response.json({ items }));

beforeAll(async () => void (await loadChunk(loadRequests)));

afterEach(() => {
  act(() => approvals.items.set([]));
});

it("counts what waits, says who asks since when, and leads there", async () => {
  agents.set([{ id: "a1", name: "Harbour" } as AgentView, { id: "a2", name: "Pier", settings: {} } as AgentView]);
  const listed = [{ id: "c1", title: "Tea", agentId: "a1" } as ConversationView];
  conversations.state.update((list) => ({ ...list, items: listed }));
  const drawn = draw(<LazyApprovalsBell />);
  expect(drawn.text).toBe("");
  const createdAt = new Date(minute.get() - 5 * 60_000).toISOString();
  const elsewhere = { conversationId: "c2", conversationTitle: "Orders", agentId: "a2" };
  responds(open("r1", { createdAt }), open("r2", { kind: "tool", toolName: "order", server: "shop", ...elsewhere }));
  await act(approvals.refresh);
  const bell = drawn.named("2 requests are waiting for you");
  expect(bell.textContent).toContain("2");
  await click(bell);
  await vi.waitFor(() => expect(drawn.place.querySelectorAll("section")).toHaveLength(2));
  const [first, second] = [...drawn.place.querySelectorAll("section")];
  expect(first!.textContent).toContain("TeaHarbour · 5 minutes ago");
  expect(first!.textContent).toContain("Which one?");
  expect(second!.textContent).toContain("Let Pier run order from shop?");
  expect(second!.textContent).toContain("OrdersPier · ");
  expect(second!.querySelector('a[href*="a2"]')?.textContent).toBe("Change permissions");
  await click(second!.querySelector("a")!);
  expect(drawn.place.querySelectorAll("section")).toHaveLength(0);
});

it("sends what is decided there", async () => {
  const drawn = draw(<LazyApprovalsBell />);
  responds(open("r2", { kind: "tool", toolName: "order", server: "shop" }));
  await act(approvals.refresh);
  await click(drawn.find<HTMLElement>("button.requests"));
  await vi.waitFor(() => drawn.find(".approval"));
  await click(drawn.find<HTMLElement>(".approval .primary"));
  await vi.waitFor(() =>
    expect(respond.mock.calls.map(([url, { method, body }]) => [url.pathname, method, body])).toContainEqual([
      "/api/turns/t/approvals/r2",
      "POST",
      JSON.stringify({ action: "allow", scope: "once" }),
    ]),
  );
});

it("names the server that asks", async () => {
  const drawn = draw(<LazyApprovalsBell />);
  responds(open("r3", { kind: "elicitation", toolName: "book_table", server: "office" }));
  await act(approvals.refresh);
  await click(drawn.find<HTMLElement>("button.requests"));
  expect(drawn.find(".question").textContent).toContain("office asks, to run book_table");
});

it("leads to what is allowed in a conversation that is not the open one", async () => {
  const drawn = draw(<LazyApprovalsBell />);
  responds(open("r2", { kind: "tool", toolName: "order", server: "shop", conversationId: "c2" }));
  await act(approvals.refresh);
  await click(drawn.find<HTMLElement>("button.requests"));
  await click(drawn.find<HTMLElement>(".approval .primary + button"));
  await vi.waitFor(() => expect(toasts.get().at(-1)?.text).toBe("order won’t ask again in this conversation."));
  act(() => toasts.get().at(-1)!.action!.run());
  expect(location.hash).toBe("#/c/c2");
  expect(allowedToolsOf.get()).toBe("c2");
  location.hash = "";
});

it("keeps what is known when it cannot be read", async () => {
  responds(open("r1"));
  await approvals.refresh();
  respond.mockImplementation(async () => new Response("{}", { status: 500 }));
  await approvals.refresh();
  expect(approvals.items.get()).toHaveLength(1);
});
