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

function View({ state, wanted }: { state: Partial<ThreadState>; wanted?: string }) {
  const { scroller, shown, isAtEnd, onScroll, earlier } = useScrolling(thread, { ...EMPTY_THREAD, ...state }, wanted);
  return (
    <div ref={scroller} onScroll={onScroll}>
      <p>{isAtEnd ? "at the end" : "above"}</p>
      <output>{shown.at(-1)?.id}</output>
      <data>{shown.length}</data>
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

it("offers a way to the end only where something is below the message that was opened", async () => {
  const state = { messages: messages(2) };
  const drawn = draw(<View state={state} />);
  resize(drawn, HEIGHT);
  drawn.again(<View state={state} wanted="m1" />);
  expect(drawn.find("p").textContent).toBe("at the end");
  resize(drawn, 2000); // the text of a reply has arrived
  await act(async () => resized());
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

it("mounts what one sees first, and then a few at a time until enough is beyond it", async () => {
  vi.useFakeTimers();
  const drawn = draw(<View state={{ messages: messages(200) }} />);
  resize(drawn, 5000);
  drawn.find("div").scrollTop = 4500; // at the end
  const mounted = () => Number(drawn.find("data").textContent);
  const first = mounted();
  expect(first).toBeLessThan(20);
  const counts: number[] = [];
  for (let pause = 0; pause < 60; pause++) {
    await act(async () => vi.advanceTimersByTime(200));
    counts.push(mounted());
  }
  expect(Math.max(...counts.map((it, at) => it - (counts[at - 1] ?? first)))).toBeLessThan(5);
  expect(counts.at(-1)).toBeGreaterThan(35);
  expect(counts.at(-1)).toBeLessThan(50);
  expect(drawn.find("output").textContent).toBe("m199");
  vi.useRealTimers();
});
