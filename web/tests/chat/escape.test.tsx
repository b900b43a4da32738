import { type ApprovalView, type FeedbackView } from "@threadkeep/client";
import { act, useState, type ReactNode } from "react";
import { afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";

import { Composer } from "../../src/chat/composer/composer";
import { RatingForm } from "../../src/chat/reply/rating-form";
import { EditArguments } from "../../src/chat/requests/edit-arguments";
import { LazyApprovalsBell, loadRequests } from "../../src/chat/requests/lazy-request";
import { SelectionBar } from "../../src/sidebar/selecting";
import { approvals } from "../../src/state/front-end";
import { Menu } from "../../src/ui/menu";
import { RenameForm } from "../../src/ui/rename-form";
import { loadChunk } from "../../src/ui/use-chunk";
import { click, draw, press } from "../draw";

beforeAll(async () => void (await loadChunk(loadRequests)));
beforeEach(() => localStorage.clear());
afterEach(() => act(() => approvals.items.set([])));

const ignored = () => {};
const feedback: FeedbackView = { rating: "down", note: "", shareText: false };
const question = { requestId: "r", kind: "tool", toolName: "order", server: "shop", message: "", turnId: "t", conversationId: "c", agentId: "a", arguments: { count: 1 }, createdAt: "2026-01-01T00:00:00.000Z", expiresAt: "2026-01-08T00:00:00.000Z" } as unknown as ApprovalView;

/** Shows something until it closes. */
function Until({ children }: { children: (onClose: () => void) => ReactNode }) {
  const [isOpen, setOpen] = useState(true);
  return isOpen && children(() => setOpen(false));
}

const nothingSelected = { chosen: [], isSelected: () => false, clear: ignored } as never;

/** What can be open, what is seen of it, and how it is opened if it isn't from the start. */
const OPEN: Record<string, { node: ReactNode; shown: string; open?: () => Promise<void> }> = {
  "the bell": { node: <LazyApprovalsBell />, shown: ".approvals-panel", open: () => click(document.querySelector<HTMLElement>("button.requests")!) },
  "a form in the bell": {
    node: <LazyApprovalsBell />,
    shown: ".edit-arguments",
    open: async () => {
      await click(document.querySelector<HTMLElement>("button.requests")!);
      await click([...document.querySelectorAll<HTMLElement>(".approval button")].find((it) => it.textContent === "Edit")!);
    },
  },
  "arguments to change": {
    node: <Until>{(close) => <EditArguments values={{ a: 1 }} schema={undefined} sending={false} onCancel={close} onSave={ignored} />}</Until>,
    shown: ".edit-arguments",
  },
  "a rating": { node: <Until>{(close) => <RatingForm feedback={feedback} onRate={async () => {}} onClose={close} />}</Until>, shown: ".rating" },
  "a menu": {
    node: (
      <Menu label="More" groups={[{ items: [{ label: "Rename", run: ignored }] }]}>
        …
      </Menu>
    ),
    shown: ".menu",
    open: () => click(document.querySelector<HTMLElement>("[aria-haspopup=menu]")!),
  },
  "a title": { node: <Until>{(close) => <RenameForm title="Tea" onDone={close} />}</Until>, shown: ".rename" },
  "a selection": { node: <Until>{(close) => <SelectionBar items={[]} selection={nothingSelected} onEnd={close} />}</Until>, shown: ".bulk-bar" },
};

function behind(onStop: () => void, node: ReactNode, more: object = {}) {
  const page = (open: ReactNode) => (
    <>
      <Composer draftKey="c1" placeholder="" limit={0} running queues onSend={async () => true} onStop={onStop} {...more} />
      {open}
    </>
  );
  const drawn = draw(page(null));
  drawn.again(page(node)); // by then the composer has had its focus
  return drawn;
}

const focusable = (shown: Element) => [...shown.querySelectorAll<HTMLElement>("button, input, textarea")];

it.each(Object.keys(OPEN))("closes %s before it stops anything, wherever the focus is", async (name) => {
  const { node, shown, open } = OPEN[name]!;
  act(() => approvals.items.set([question]));
  const count = await (async () => {
    const drawn = behind(ignored, node);
    await open?.();
    const { length } = focusable(drawn.find(shown));
    drawn.again(null);
    return length;
  })();
  for (let at = -1; at < count; at++) {
    const onStop = vi.fn();
    const drawn = behind(onStop, node);
    await open?.();
    const target = at < 0 ? document.body : focusable(drawn.find(shown))[at]!;
    const event = await press(target, "Escape");
    expect([drawn.place.querySelector(shown), onStop.mock.calls, event.defaultPrevented]).toEqual([null, [], true]);
    drawn.again(null);
  }
});

it("closes what was opened last first, then the next, and only then stops", async () => {
  act(() => approvals.items.set([question]));
  const onStop = vi.fn();
  const { node, open } = OPEN["a form in the bell"]!;
  const drawn = behind(onStop, node);
  await open!();
  const left = () => [".edit-arguments", ".approvals-panel"].map((it) => drawn.place.querySelector(it) !== null);
  expect(left()).toEqual([true, true]);
  await press(document.body, "Escape");
  expect(left()).toEqual([false, true]);
  await press(document.body, "Escape");
  expect([left(), onStop.mock.calls.length]).toEqual([[false, false], 0]);
  await press(document.body, "Escape");
  expect(onStop).toHaveBeenCalledOnce();
});

it("never stops a turn that has asked its user, nor from a field, a dialog or an input method", async () => {
  const onStop = vi.fn();
  const asking = behind(onStop, null, { asking: true });
  for (const target of [document.body, asking.named("Message")]) await press(target, "Escape");
  asking.again(null);
  const drawn = behind(onStop, <input id="other" />);
  await press(drawn.find("#other"), "Escape");
  await press(drawn.named("Message"), "Escape", { isComposing: true });
  const dialog = drawn.place.appendChild(document.createElement("dialog"));
  dialog.open = true;
  const event = await press(dialog, "Escape");
  expect([onStop.mock.calls, event.defaultPrevented]).toEqual([[], false]); // the browser closes it
  dialog.remove();
  await press(drawn.named("Message"), "Escape");
  expect(onStop).toHaveBeenCalledOnce();
});

it("is decided in one place", () => {
  const sources = import.meta.glob<string>("../../src/**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true });
  const knowing = Object.entries(sources).filter(([, text]) => /["']Escape["']/.test(text));
  expect(knowing.map(([path]) => path.split("/src/")[1])).toEqual(["hooks/use-escape.ts"]);
});
