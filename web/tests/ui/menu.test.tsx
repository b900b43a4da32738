import { act } from "react";
import { expect, it, vi } from "vitest";

import { Menu } from "../../src/ui/menu";
import { click, draw, type Drawn } from "../draw";

const ran = vi.fn();
const groups = [
  { items: [{ label: "Rename", run: () => ran("Rename") }, { label: "Archive", run: () => ran("Archive") }] },
  { items: [] },
  { items: [{ label: "Delete", run: () => ran("Delete"), isDangerous: true }] },
];

const drawMenu = () =>
  draw(
    <Menu label="More actions" groups={groups}>
      …
    </Menu>,
  );

const press = (key: string) =>
  act(async () => {
    document.activeElement!.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  });

const isOpen = (drawn: Drawn) => drawn.place.querySelector("[role=menu]") !== null;
const focused = () => document.activeElement?.textContent;

it("goes through its items by arrow keys and by their first letters", async () => {
  const drawn = drawMenu();
  drawn.find("button").focus();
  await press("ArrowDown");
  expect(focused()).toBe("Rename");
  for (const [key, name] of [
    ["ArrowDown", "Archive"],
    ["ArrowDown", "Delete"],
    ["ArrowDown", "Rename"],
    ["ArrowUp", "Delete"],
    ["Home", "Rename"],
    ["End", "Delete"],
    ["a", "Archive"],
  ] as const) {
    await press(key);
    expect(focused()).toBe(name);
  }
});

it("opens at its last item from below", async () => {
  const drawn = drawMenu();
  drawn.find("button").focus();
  await press("ArrowUp");
  expect(focused()).toBe("Delete");
});

it("gives the focus back when it closes, and runs what was chosen once", async () => {
  const drawn = drawMenu();
  const button = drawn.find("button");
  await click(button);
  expect(button.getAttribute("aria-expanded")).toBe("true");
  await press("Escape");
  expect([isOpen(drawn), document.activeElement]).toEqual([false, button]);
  await click(button);
  await click(drawn.named("Archive"));
  expect([isOpen(drawn), ran.mock.calls]).toEqual([false, [["Archive"]]]);
});

it.each(["pointerdown", "scroll"])("closes at a %s elsewhere", async (type) => {
  const drawn = drawMenu();
  await click(drawn.find("button"));
  await act(async () => void drawn.named("Archive").dispatchEvent(new Event(type, { bubbles: true })));
  expect(isOpen(drawn)).toBe(true);
  drawn.find("button").getBoundingClientRect = () => new DOMRect(0, 50); // where it is scrolled to
  await act(async () => void document.body.dispatchEvent(new Event(type, { bubbles: true })));
  expect(isOpen(drawn)).toBe(false);
});

it("stays open when its button doesn’t move, as when a reply streams", async () => {
  const drawn = drawMenu();
  const other = drawn.place.appendChild(document.createElement("div"));
  await click(drawn.find("button"));
  for (const it of [other, document]) await act(async () => void it.dispatchEvent(new Event("scroll")));
  expect(isOpen(drawn)).toBe(true);
});

it("gives the focus back when the window is resized, as by a zoom", async () => {
  const drawn = drawMenu();
  const button = drawn.find("button");
  await click(button);
  await act(async () => void window.dispatchEvent(new Event("resize")));
  expect([isOpen(drawn), document.activeElement]).toEqual([false, button]);
});
