import { Store } from "@threadkeep/client";

const MINUTE_MS = 60_000;

/** The time, updated once a minute, for relative times. */
export const minute = new Store(Date.now());

export function followTime(): void {
  setInterval(() => minute.set(Date.now()), MINUTE_MS);
}
