import { EMPTY_THREAD, type Message, type ThreadState } from "@threadkeep/client";
import { act } from "react";
import { beforeEach, expect, it, vi } from "vitest";

import { useScrolling } from "../../src/chat/use-scrolling";
import { openThread } from "../../src/state/front-end";
import { click, draw, type Drawn } from "../draw";

/** A view of 500 pixels on something that is as high as a test says. */
const HEIGHT = 500;
let resized = () => {};

beforeEach(() => {
  vi.stubGlobal(
    "ResizeObserver",
    class {
      constructor(told: () => void) {
        resized = told;
      }
      observe(): void {}
      disconnect(): void {}
    },
  );
});

const thread = openThread("c");
const messages = (count: number) => Array.from({ length: count }, (_, at) => ({ id: `m${at}` }) as Message);

function View({ state }: { state: Partial<ThreadState> }) {
  const { scroller, shown, isAtEnd, onScroll, earlier } = useScrolling(thread, { ...EMPTY_THREAD, ...state }, undefined);
  return (
    <div ref={scroller} onScroll={onScroll}>
      <p>{isAtEnd ? "at the end" : "above"}</p>
      <output>{shown.at(-1)?.id}</output>
      <button onClick={earlier}>Earlier</button>
    </div>
  );
}

/** Gives the box a height, as a browser does that never scrolls beyond the end. */
function resize(drawn: Drawn, height: number): void {
  const box = drawn.find("div");
  const most = height - HEIGHT;
  let top = Math.min(box.scrollTop, most);
  const set = (next: number) => void (top = Math.min(next, most));
  Object.defineProperties(box, {
    clientHeight: { value: HEIGHT, configurable: true },
    scrollHeight: { value: height, configurable: true },
    scrollTop: { get: () => top, set, configurable: true },
  });
}
const scroll = (drawn: Drawn) => act(async () => void drawn.find("div").dispatchEvent(new Event("scroll")));

it("follows a reply that grows again after something was folded away", async () => {
  const drawn = draw(<View state={{ messages: messages(2) }} />);
  for (const height of [2000, 1400]) {
    resize(drawn, height);
    resized();
    if (height === 2000) await scroll(drawn);
  }
  resize(drawn, 1600); // before the event for the fold arrives
  await scroll(drawn);
  expect(drawn.find("p").textContent).toBe("at the end");
  drawn.find("div").scrollTop = 500;
  await scroll(drawn);
  expect(drawn.find("p").textContent).toBe("above");
});

it("draws what comes next after a page of older messages was read", async () => {
  const drawn = draw(<View state={{ messages: messages(100).slice(50), hasOlder: true }} />);
  vi.spyOn(thread.reading, "readOlder").mockResolvedValue();
  await click(drawn.named("Earlier"));
  drawn.again(<View state={{ messages: messages(100) }} />);
  drawn.again(<View state={{ messages: messages(102) }} />);
  expect(drawn.find("output").textContent).toBe("m101");
});
