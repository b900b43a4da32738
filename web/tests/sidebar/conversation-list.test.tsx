import { type ConversationView } from "@threadkeep/client";
import { act } from "react";
import { beforeEach, expect, it, vi } from "vitest";

import { ConversationList } from "../../src/sidebar/conversation-list";
import { conversations } from "../../src/state/front-end";
import { click, draw, press, respond, type Drawn } from "../draw";

const COUNT = 300;
const ROW = 30;
const HEADING = 40;
const HEIGHT = 600;

/** A sidebar that shows twenty of many rows at a time. */
beforeEach(() => {
  for (const name of ["ResizeObserver", "IntersectionObserver"]) {
    vi.stubGlobal(
      name,
      class {
        observe(): void {}
        disconnect(): void {}
      },
    );
  }
  vi.spyOn(HTMLElement.prototype, "offsetHeight", "get").mockImplementation(function (this: HTMLElement) {
    return this.tagName === "LI" ? ROW : HEADING;
  });
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(HEIGHT);
  show(Array.from({ length: COUNT }, (_, nth) => `c${nth}`));
});

function show(ids: readonly string[]): void {
  const items = ids.map((id) => ({ id, title: id, status: "active", updatedAt: "2020-01-01" }) as ConversationView);
  act(() => conversations.state.set({ items, nextCursor: null, state: "ready" }));
}

async function scroll(drawn: Drawn, row: number): Promise<void> {
  const list = drawn.find(".list");
  list.scrollTop = HEADING + row * ROW;
  await act(async () => void list.dispatchEvent(new Event("scroll")));
}

const rowsOf = (drawn: Drawn) => [...drawn.place.querySelectorAll<HTMLElement>("li")];
const idsOf = (drawn: Drawn) => rowsOf(drawn).map((it) => it.dataset["id"]!);
const linkTo = (drawn: Drawn, id: string) => drawn.find(`[data-id=${id}] a`);

it("mounts the rows near the view, each of which says which of how many it is", async () => {
  const drawn = draw(<ConversationList openId={null} />);
  expect(idsOf(drawn)[0]).toBe("c0");
  await scroll(drawn, 150);
  expect(idsOf(drawn)).toContain("c150");
  expect(idsOf(drawn)).toContain("c170");
  expect(idsOf(drawn).length).toBeLessThan(100);
  const [first] = rowsOf(drawn);
  expect(first!.getAttribute("aria-setsize")).toBe(String(COUNT));
  expect(first!.getAttribute("aria-posinset")).toBe(String(Number(first!.dataset["id"]!.slice(1)) + 1));
});

it("keeps the focused row while the user scrolls elsewhere, and goes on from there", async () => {
  const drawn = draw(<ConversationList openId={null} />);
  await act(async () => linkTo(drawn, "c1").focus());
  await scroll(drawn, 150);
  expect(idsOf(drawn)).not.toContain("c0");
  expect(document.activeElement).toBe(linkTo(drawn, "c1"));
  await press(linkTo(drawn, "c1"), "ArrowDown");
  expect(document.activeElement).toBe(linkTo(drawn, "c2"));
});

it("goes to the last row, the first, and above it to the search by keyboard", async () => {
  const drawn = draw(<ConversationList openId={null} />);
  await act(async () => drawn.find(".find").focus());
  await press(drawn.find(".find"), "ArrowDown");
  await press(linkTo(drawn, "c0"), "End");
  expect(document.activeElement).toBe(linkTo(drawn, "c299"));
  await press(linkTo(drawn, "c299"), "Home");
  expect(document.activeElement).toBe(linkTo(drawn, "c0"));
  await press(linkTo(drawn, "c0"), "ArrowUp");
  expect(document.activeElement).toBe(drawn.find(".find"));
});

it("keeps what the user sees in place when one of them moves to the top, and the top in view", async () => {
  const drawn = draw(<ConversationList openId={null} />);
  const list = drawn.find(".list");
  await scroll(drawn, 150);
  const before = list.scrollTop;
  const others = Array.from({ length: COUNT }, (_, nth) => `c${nth}`).filter((it) => it !== "c150" && it !== "c250");
  show(["c250", "c150", ...others]);
  expect(list.scrollTop).toBe(before + ROW); // one of the two came from below
  await scroll(drawn, -HEADING / ROW);
  show(["new", "c250", "c150", ...others]);
  expect(list.scrollTop).toBe(0);
});

it("selects several with Shift, and archives them together", async () => {
  show(["c0", "c1", "c2", "c3"]);
  respond.mockImplementation(async (url, { method }) => {
    if (method === "PATCH") return Response.json({ id: url.pathname.split("/").at(-1), status: "archived" });
    return Response.json({ items: conversations.state.get().items, nextCursor: null });
  });
  const drawn = draw(<ConversationList openId={null} />);
  const shift = { shiftKey: true, bubbles: true, cancelable: true };
  await act(async () => void linkTo(drawn, "c1").dispatchEvent(new MouseEvent("click", shift)));
  await vi.waitFor(() => drawn.named("Select “c3”"));
  const box = drawn.named("Select “c3”");
  await act(async () => void box.dispatchEvent(new MouseEvent("pointerdown", shift)));
  await click(box);
  expect(drawn.find(".bulk-bar").textContent).toContain("3 selected");
  await click(drawn.named("Archive"));
  await vi.waitFor(() => expect(idsOf(drawn)).toEqual(["c0"]));
  await vi.waitFor(() => expect(drawn.allNamed("Archive")).toEqual([]));
  expect(linkTo(drawn, "c0").textContent).toBe("c0");
});

it("scrolls to the conversation that is opened, once", async () => {
  const far = draw(<ConversationList openId="c200" />);
  const { scrollTop } = far.find(".list");
  expect(scrollTop).toBeGreaterThan(HEADING + 200 * ROW - HEIGHT);
  await scroll(far, 10);
  show(["new", ...Array.from({ length: COUNT }, (_, nth) => `c${nth}`)]);
  expect(far.find(".list").scrollTop).toBeLessThan(20 * ROW);
});
