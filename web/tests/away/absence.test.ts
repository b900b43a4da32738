import { type ApprovalView, type UserEvent } from "@threadkeep/client";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { watchAbsence, type Happening } from "../../src/away/absence";
import { frontEnd } from "../../src/state/front-end";
import { setPlace } from "../../src/state/page-title";
import { rename } from "../../src/state/route";
import { respond } from "../draw";

/** The tabs' locks: those that are held. */
const held = new Set<string>();
const locks = {
  request: async (name: string, _: object, run: (lock: object | null) => Promise<void>) => {
    const isFree = !held.has(name);
    held.add(name);
    await run(isFree ? {} : null);
  },
};

let tell: (event: UserEvent) => void;
let told: Happening[];
let missed: boolean[];
let unwatch: () => void;

function hide(isHidden: boolean): void {
  vi.spyOn(document, "hidden", "get").mockReturnValue(isHidden);
  document.dispatchEvent(new Event("visibilitychange"));
}

function watch(): void {
  unwatch = watchAbsence({ onHappening: (it) => told.push(it), onReturn: (it) => missed.push(it) });
}

const ended: UserEvent = { id: "1", type: "turn_ended", conversationId: "c1", turnId: "t1" };
const settle = () => vi.advanceTimersByTimeAsync(1000);

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  told = [];
  missed = [];
  held.clear();
  Object.defineProperty(navigator, "locks", { configurable: true, value: locks });
  vi.spyOn(frontEnd.events, "on").mockImplementation((listener) => {
    tell = listener;
    return () => {};
  });
  respond.mockImplementation(async () => Response.json({ status: "COMPLETED" }));
  rename({ name: "conversation", id: "c1" });
  setPlace("Tea");
  watch();
});

afterEach(() => {
  unwatch();
  rename({ name: "new", agentId: null });
  setPlace("");
  Reflect.deleteProperty(navigator, "locks");
  vi.restoreAllMocks();
  vi.useRealTimers();
});

it("tells of an answer that ended unseen, counts it in the title, and forgets it when the user returns", async () => {
  hide(true);
  tell(ended);
  await settle();
  expect(told).toEqual([{ conversationId: "c1", hasFailed: false }]);
  expect(document.title).toBe("(1) Tea · Threadkeep");
  hide(false);
  expect(document.title).toBe("Tea · Threadkeep");
  expect(missed).toEqual([true]);
});

it("says nothing while the user is here", async () => {
  hide(false);
  tell(ended);
  await settle();
  expect(told).toEqual([]);
  expect(document.title).toBe("Tea · Threadkeep");
});

it("says nothing of what another tab shows", async () => {
  hide(true);
  held.add("threadkeep.told./.1");
  tell(ended);
  await settle();
  expect(told).toEqual([]);
});

it("says nothing of an answer that somebody stopped, nor of a conversation that was never open here", async () => {
  hide(true);
  tell({ ...ended, conversationId: "c2" });
  respond.mockImplementation(async () => Response.json({ status: "CANCELLED" }));
  tell({ ...ended, id: "2" });
  await settle();
  expect(told).toEqual([]);
  hide(false);
  expect(missed).toEqual([false]);
});

it("tells of a request of any conversation", async () => {
  const request = { requestId: "r1", turnId: "t9", conversationId: "c9", kind: "tool", message: "May I?" } as ApprovalView;
  respond.mockImplementation(async () => Response.json({ items: [request] }));
  hide(true);
  tell({ id: "3", type: "approval_opened", conversationId: "c9", turnId: "t9" });
  await settle();
  expect(told).toEqual([{ conversationId: "c9", request }]);
});
