/** The page's way to its server. Addresses are relative to the page, which may be mounted below a path. */

import { ApiClient, Store } from "@threadkeep/client";
import { browserPlatform } from "@threadkeep/client/browser";

import { isReached } from "../state/reachability";
import { copies } from "../state/device-copies";

/** Whether this is the page of a share, `s/TOKEN` below the page itself. */
export const isOfShare = document.documentElement.dataset["page"] === "share";

/** Says who the user is. */
export const ME = "/api/me";

const TOKEN = "threadkeep.token";

/** The token of the user who signed in: in memory and for this tab; open tabs share it. */
export const token = new Store<string | null>(sessionStorage.getItem(TOKEN));

export function setToken(value: string | null): void {
  if (value === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, value);
  token.set(value);
}

const GIVEN = /^#token=([\w.~+/=-]+)$/;

/** Keeps the token that `threadkeep open` put into the address, and removes it from there; false if there is none. */
export function takeGivenToken(): boolean {
  const given = GIVEN.exec(location.hash)?.[1];
  if (given === undefined) return false;
  history.replaceState(null, "", location.pathname + location.search);
  setToken(given);
  return true;
}

let unauthorized = () => {};

/** Calls `listener` when the server no longer accepts our token. */
export function whenUnauthorized(listener: () => void): void {
  unauthorized = listener;
}

/** The user as this device knows them: until the server says who it is, nothing is asked or sent in their name. */
export const isUnconfirmed = new Store(false);

export const platform = { ...browserPlatform(), copies };

export const api = new ApiClient({
  baseUrl: () => (isOfShare ? new URL("../", document.baseURI).href : document.baseURI),
  token: token.get,
  onUnauthorized: () => unauthorized(),
  onReached: (it) => isReached.set(it),
  holds: (path) => isUnconfirmed.get() && path !== ME,
  pause: platform.pause,
});
