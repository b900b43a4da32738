/** The server that this page came from. What this browser keeps for it is for no other server at the same address. */

import { Unreachable, type MeView } from "@threadkeep/client";

/** The id of its database; empty where the page was not served by it, as in development. */
export const installation = document.documentElement.dataset["installation"] ?? "";

/** When this tab last gave way to the page of another server. */
const REPLACED = "threadkeep.replaced";
/** Not more often: behind a proxy, two servers may take turns. */
const REPLACED_EVERY_MS = 30_000;

/** The name under which this browser keeps something for this server alone. */
export function keyHere(name: string): string {
  return installation ? `threadkeep.${installation}.${name}` : `threadkeep.${name}`;
}

const ADOPTED = /^threadkeep\.(token|user|drafts-of|draft\..*|draft-files\..*)$/s;

/** What earlier versions kept for whichever server is at this address becomes this one's; nothing of it is sent by itself. */
export function adoptKept(): void {
  adopt(localStorage);
  adopt(sessionStorage);
}

function adopt(storage: Storage): void {
  if (!installation) return;
  for (const key of Object.keys(storage)) {
    const name = ADOPTED.exec(key)?.[1];
    if (name !== undefined && storage.getItem(keyHere(name)) === null) move(storage, key, keyHere(name));
  }
}

/** In this order: a full storage has no room for both. */
function move(storage: Storage, from: string, to: string): void {
  const value = storage.getItem(from)!;
  storage.removeItem(from);
  try {
    storage.setItem(to, value);
  } catch {
    storage.setItem(from, value);
  }
}

/** Shows the page of another server that responds at this address; throws, since nothing it says concerns this page. */
export function checkInstallation(me: MeView): void {
  const responds = me.installation as string | undefined; // missing while a server of an earlier version still runs
  if (!installation || responds === undefined || responds === installation) return;
  const last = Number(sessionStorage.getItem(REPLACED) ?? -Infinity);
  if (Date.now() - last > REPLACED_EVERY_MS) {
    sessionStorage.setItem(REPLACED, String(Date.now()));
    location.reload();
  }
  throw new Unreachable("another server responds");
}
