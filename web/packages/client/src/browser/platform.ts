import { type OtherTabs, type OutboxTabMessage } from "../outbox/ports.ts";
import { pause, type Pause } from "../pause.ts";
import { type OnReturn, type Platform } from "../platform.ts";
import { IndexedDbStore } from "./indexed-db-store.ts";
import { followSharedUserEvents } from "./shared-user-events.ts";

/** A browser: what is sent outlives the page, and its tabs share one stream and one outbox.

Those of other `apps` at the same address are not concerned; each server is its own anyway. */
export function browserPlatform(app = "threadkeep"): Platform {
  return {
    store: new IndexedDbStore(`${app}.outbox`),
    tabs: otherTabs(`${app}.outbox.${new URL(".", document.baseURI).href}`),
    pause: pauseUntilOnline,
    onReturn,
    atNextFrame,
    followUserEvents: followSharedUserEvents,
  };
}

function otherTabs(name: string): OtherTabs {
  const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(name);
  return {
    // Without TLS there are no locks; what is sent twice by accident happens once.
    alone: async (what, work) => (navigator.locks ? navigator.locks.request(`${name}${what}`, work) : work()),
    tell: (message) => channel?.postMessage(message),
    listen: (hear) => channel?.addEventListener("message", ({ data }: MessageEvent<OutboxTabMessage>) => hear(data)),
  };
}

/** Waits; shorter when the browser says that the network is back. */
const pauseUntilOnline: Pause = async (ms, signal) => {
  const online = new AbortController();
  const wake = () => online.abort();
  window.addEventListener("online", wake);
  await pause(ms, signal ? AbortSignal.any([signal, online.signal]) : online.signal);
  window.removeEventListener("online", wake);
};

const onReturn: OnReturn = (look, signal) => {
  const lookIfSeen = () => {
    if (!document.hidden) look();
  };
  window.addEventListener("focus", lookIfSeen, { signal });
  document.addEventListener("visibilitychange", lookIfSeen, { signal });
};

/** Whether a key was pressed that no frame has shown yet. */
let isKeyWaiting = false;

globalThis.window?.addEventListener("keydown", () => void (isKeyWaiting = true), { capture: true, passive: true });

/**
 * Calls `draw` with the next frame, or with the one after it if the next has a key to show: what the user types comes first.
 * Calls it now if the page is hidden, since hidden pages have no frames.
 */
export function atNextFrame(draw: () => void): void {
  if (document.hidden) return draw();
  requestAnimationFrame(() => {
    if (!isKeyWaiting) return draw();
    isKeyWaiting = false;
    requestAnimationFrame(draw);
  });
}
