/** Whether conversations are kept on this device, which may not be its user's alone. */

import { Store } from "@threadkeep/client";

import { isEmbedded, isLocal } from "../api/api";
import { isForOfflineUse } from "./shell";
import { COPIES, DELETING, followKey } from "./storage";

/** `off`: keep nothing. `on ID`: keep what this user opens, until they sign out. */
const OFF = "off";
const on = (userId: string) => `on ${userId}`;

const isInstalled = () => matchMedia("(display-mode: standalone)").matches;

/** What the user chose in this browser; null if nothing. */
export const choice = new Store<string | null>(localStorage.getItem(COPIES));

/** Follows what the user chooses in other tabs, until the returned function is called. */
export const followChoice = () => followKey(COPIES, () => choice.set(localStorage.getItem(COPIES)));

/** Without a choice: where nobody signs in, and where the page was installed, which people do on devices of their own. */
export function isWanted(userId: string): boolean {
  const chosen = localStorage.getItem(COPIES);
  if (!isForOfflineUse() || chosen === OFF) return false;
  return chosen === on(userId) || (isLocal && !isEmbedded()) || isInstalled();
}

/** An installed page is its user's choice for the browser's tabs, too. */
export function noteInstalled(userId: string): void {
  if (isInstalled() && localStorage.getItem(COPIES) === null) choose(userId, true);
}

export function choose(userId: string, isOn: boolean): void {
  write(isOn ? on(userId) : OFF);
}

/** After a sign-out has deleted all copies: the next user chooses for themselves. The choice to keep nothing stays. */
export function forgetChoice(): void {
  if (localStorage.getItem(COPIES) === DELETING) write(null);
}

function write(value: string | null): void {
  if (value === null) localStorage.removeItem(COPIES);
  else localStorage.setItem(COPIES, value);
  choice.set(value);
}
