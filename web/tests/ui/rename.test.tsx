import { expect, it, vi } from "vitest";

import { RenameForm } from "../../src/ui/rename-form";
import { click, draw, press, type, undraw } from "../draw";

const onDone = vi.fn();

function begin(): HTMLInputElement {
  onDone.mockReset();
  return draw(<RenameForm title="Tea" onDone={onDone} />).find<HTMLInputElement>("input");
}

it("keeps what was typed when it is taken away", async () => {
  await type(begin(), "Ferry");
  undraw();
  expect(onDone.mock.calls).toEqual([["Ferry"]]);
  begin();
  undraw();
  expect(onDone).not.toHaveBeenCalled();
});

it("keeps nothing after Escape, unless that closes the list of an input method", async () => {
  const field = begin();
  await type(field, "渡");
  await press(field, "Escape", { isComposing: true });
  expect(onDone).not.toHaveBeenCalled();
  const event = await press(field, "Escape");
  undraw();
  expect([onDone.mock.calls, event.defaultPrevented]).toEqual([[[null]], true]);
});

it("saves or drops what was typed by its buttons", async () => {
  onDone.mockReset();
  const drawn = draw(<RenameForm title="Tea" onDone={onDone} />);
  await type(drawn.find("input"), "Ferry");
  await click(drawn.named("Cancel"));
  undraw();
  const again = draw(<RenameForm title="Tea" onDone={onDone} />);
  await type(again.find("input"), "Harbour");
  await click(again.named("Save"));
  undraw();
  expect(onDone.mock.calls).toEqual([[null], ["Harbour"]]);
});
