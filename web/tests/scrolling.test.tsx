import { act } from "react";
import { beforeEach, expect, it, vi } from "vitest";

import { useScrolling } from "../src/components/use-scrolling";
import { EMPTY, type ThreadState } from "../src/thread/reduce";
import { Thread } from "../src/thread/thread";
import { type Message } from "../src/turn/parts";
import { draw, type Drawn } from "./draw";

/** A view of 500 pixels on something that is as high as a test says. */
const HEIGHT = 500;
let resized = () => {};
let scrolling: ReturnType<typeof useScrolling>;

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

const thread = new Thread("c");
const messages = (count: number) => Array.from({ length: count }, (_, at) => ({ id: `m${at}` }) as Message);

function View({ state }: { state: Partial<ThreadState> }) {
  scrolling = useScrolling(thread, { ...EMPTY, ...state }, undefined);
  return (
    <div ref={scrolling.scroller} onScroll={scrolling.onScroll}>
      <div>{scrolling.isAtEnd ? "at the end" : "above"}</div>
    </div>
  );
}

/** Gives the box a height, as a browser does that never scrolls beyond the end. */
function resize(drawn: Drawn, height: number): void {
  const box = drawn.find("div");
  let top = Math.min(box.scrollTop, height - HEIGHT);
  Object.defineProperties(box, {
    clientHeight: { value: HEIGHT, configurable: true },
    scrollHeight: { value: height, configurable: true },
    scrollTop: { get: () => top, set: (next: number) => (top = Math.min(next, height - HEIGHT)), configurable: true },
  });
}
const scroll = (drawn: Drawn) => act(async () => void drawn.find("div").dispatchEvent(new Event("scroll")));

it("follows an answer that grows again after something was folded away", async () => {
  const drawn = draw(<View state={{ messages: messages(2) }} />);
  for (const height of [2000, 1400]) {
    resize(drawn, height);
    resized();
    if (height === 2000) await scroll(drawn);
  }
  resize(drawn, 1600); // before the event for the fold arrives
  await scroll(drawn);
  expect(drawn.text).toBe("at the end");
  drawn.find("div").scrollTop = 500;
  await scroll(drawn);
  expect(drawn.text).toBe("above");
});

it("draws what comes next after a page of older messages was read", async () => {
  const drawn = draw(<View state={{ messages: messages(100).slice(50), hasOlder: true }} />);
  vi.spyOn(thread, "readOlder").mockResolvedValue();
  await act(async () => scrolling.earlier());
  drawn.again(<View state={{ messages: messages(100) }} />);
  drawn.again(<View state={{ messages: messages(102) }} />);
  expect(scrolling.shown.at(-1)?.id).toBe("m101");
});
