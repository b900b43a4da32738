import { Store } from "@threadkeep/client";
import { act } from "react";
import { expect, it, vi } from "vitest";

import { useSelected } from "../src";
import { draw } from "../../../tests/draw";

it("draws again only what shows the part that has changed", () => {
  const store = new Store({ text: "", running: true });
  const times = vi.fn();
  function Button() {
    times();
    return useSelected(store, (it) => it.running) ? "Stop" : "Send";
  }
  const drawn = draw(<Button />);
  for (let count = 0; count < 50; count++) act(() => store.update((it) => ({ ...it, text: `${it.text}x` })));
  expect(times).toHaveBeenCalledOnce();
  act(() => store.update((it) => ({ ...it, running: false })));
  expect(drawn.text).toBe("Send");
});
