import { act } from "react";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { useLongPress } from "../../src/sidebar/use-long-press";
import { draw } from "../draw";

const selected = vi.fn();
const opened = vi.fn();

function Row() {
  return <button type="button" onClick={opened} {...useLongPress(selected)} />;
}

beforeEach(() => {
  vi.useFakeTimers();
  selected.mockClear();
  opened.mockClear();
});
afterEach(() => vi.useRealTimers());

const after = (ms: number) => act(() => vi.advanceTimersByTime(ms));

/** A finger on the row: where it is, and what it does. */
function finger() {
  const row = draw(<Row />).find("button");
  const does = (type: string, how: PointerEventInit = {}) => {
    const event = new PointerEvent(type, { pointerType: "touch", bubbles: true, cancelable: true, clientX: 50, clientY: 50, ...how });
    act(() => void row.dispatchEvent(event));
    return event;
  };
  does("pointerdown");
  return does;
}

it("selects when a finger stays, though it trembles, and neither opens nor asks the browser for its menu", () => {
  const does = finger();
  after(300);
  does("pointermove", { clientX: 56, clientY: 47 });
  expect(selected).not.toHaveBeenCalled();
  after(200);
  expect(selected).toHaveBeenCalledOnce();
  expect(does("contextmenu").defaultPrevented).toBe(true);
  does("pointerup");
  expect(does("click").defaultPrevented).toBe(true);
  expect(opened).not.toHaveBeenCalled();
  does("click");
  expect(opened).toHaveBeenCalledOnce();
});

it.each([
  ["moves away", "pointermove", { clientY: 70 }],
  ["is lifted", "pointerup", {}],
  ["scrolls", "pointercancel", {}],
])("does not when the finger %s", (_, type, how) => {
  const does = finger();
  after(300);
  does(type, how);
  after(1000);
  does("click");
  expect([selected.mock.calls.length, opened.mock.calls.length]).toEqual([0, 1]);
});

it("leaves the mouse alone", () => {
  const does = finger();
  does("pointerup");
  does("pointerdown", { pointerType: "mouse" });
  after(1000);
  expect(selected).not.toHaveBeenCalled();
  expect(does("contextmenu", { pointerType: "mouse" }).defaultPrevented).toBe(false);
});
