/** What this device keeps of what the server said. The code that stores it is loaded after the first paint. */

import { type Copies, type MeView } from "@threadkeep/client";

import { idle } from "./idle";
import { COPIES, DELETING, store } from "./storage";

const loadDevice = () => import("./device");

/** The user whose copies these are; nothing is kept until the server has said who that is. */
let user: MeView | null = null;
/** What others left is deleted before anything is kept. */
let owning: Promise<unknown> = Promise.resolve();

export const copies: Copies = {
  keep: (path, view) => {
    const owner = user;
    if (owner !== null) void owning.then(idle).then(() => device((it) => it.keep(owner, path, view)));
  },
  read: async <T>(path: string) => {
    const owner = user;
    return owner === null ? undefined : device((it) => it.read<T>(owner, path));
  },
  drop: (path) => void device((it) => it.drop(path)),
};

/** The server says who this is: what others left is deleted. */
export function ownCopies(me: MeView): void {
  user = me;
  owning = idle().then(() => device((it) => (user?.id === me.id ? it.own(me) : undefined)));
}

/** The user whose copies this device has, who can read them without the server. */
export async function lastUser(): Promise<MeView | undefined> {
  return device((it) => it.owner());
}

/** The server can't say who this is: the copies of that user are shown. */
export function readCopiesOf(me: MeView): void {
  user = me;
}

/** The server no longer accepts this user. What they chose for this device stays. */
export function clearCopies(): void {
  user = null;
  void device((it) => it.clear());
}

/** The user signs out. Where the browser has no room for the mark, their choice goes at once, and the copies all the same. */
export function forgetCopies(): void {
  if (localStorage.getItem(COPIES) !== "off" && !store(COPIES, DELETING)) localStorage.removeItem(COPIES);
  clearCopies();
}

/** Without its code, or where the browser refuses, the device has nothing. */
async function device<T>(run: (device: Awaited<ReturnType<typeof loadDevice>>["device"]) => T): Promise<Awaited<T> | undefined> {
  try {
    return await run((await loadDevice()).device);
  } catch {
    return undefined;
  }
}
