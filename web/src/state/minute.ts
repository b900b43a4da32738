import { Store } from "./store";

const MINUTE_MS = 60_000;

/** The time, told once a minute: what says how long ago something was follows it. */
export const minute = new Store(Date.now());

setInterval(() => minute.set(Date.now()), MINUTE_MS);
