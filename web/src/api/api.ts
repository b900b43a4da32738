/** The page's way to its server. Addresses are relative to the page, which may be mounted below a path. */

import { ApiClient, Store, type ApiClientOptions } from "@threadkeep/client";
import { browserPlatform } from "@threadkeep/client/browser";

import { keyHere } from "./installation";
import { isReached } from "./reachability";

/** Whether this is the page of a share, `s/TOKEN` below the page itself. */
export const isOfShare = document.documentElement.dataset["page"] === "share";

/** Without sign-in everyone is `local`, and the token in the server's data folder is the only one. */
export const isLocal = document.documentElement.dataset["signsIn"] === "False";

/** The application that this page is part of signs people in itself. */
export const isEmbedded = () => document.documentElement.dataset["embedded"] === "True";

/** Says who the user is. */
export const ME = "/api/me";

const TOKEN = keyHere("token");

/** The token of the user who signed in: in memory and for this tab; open tabs share it. */
export const token = new Store<string | null>(null);

/** Takes the token that this tab had before it was reloaded. */
export function restoreToken(): void {
  token.set(sessionStorage.getItem(TOKEN));
}

export function setToken(value: string | null): void {
  if (value === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, value);
  token.set(value);
}

const GIVEN = /^#token=([\w.~+/=-]+)$/;

/** The token that the address brought, and the one before it. */
let given: { token: string; before: string | null } | null = null;

/** Keeps the token that `threadkeep open` put into the address, and removes it from there; whether there is one.

Only where nobody signs in: elsewhere, a stranger's link would make somebody else of the user. */
export function takeGivenToken(takes = isLocal && !isOfShare): boolean {
  const found = GIVEN.exec(location.hash)?.[1];
  if (found === undefined) return false;
  history.replaceState(null, "", location.pathname + location.search);
  if (!takes) return false;
  given = { token: found, before: token.get() };
  setToken(found);
  return true;
}

/** If this token came with the address, returns to the one before it: a link must not sign anybody out, or in as somebody else. */
export function dropGivenToken(tried: string | null): boolean {
  if (given === null || given.token !== tried) return false;
  setToken(given.before);
  given = null;
  return true;
}

let user: string | null = null;

/** Who is signed in from now on. */
export function noteUser(id: string | null): void {
  user = id;
}

let unauthorized: NonNullable<ApiClientOptions["onUnauthorized"]> = () => {};

/** Calls `listener` when the server no longer accepts our token, with what it says. */
export function whenUnauthorized(listener: typeof unauthorized): void {
  unauthorized = listener;
}

/** The user as this device knows them: until the server says who it is, nothing is asked or sent in their name. */
export const isUnconfirmed = new Store(false);

export const platform = browserPlatform();

export const api = new ApiClient({
  baseUrl: () => (isOfShare ? new URL("../", document.baseURI).href : document.baseURI),
  token: token.get,
  signedInAs: () => user,
  onUnauthorized: (error) => unauthorized(error),
  onReached: (it) => isReached.set(it),
  holds: (path) => isUnconfirmed.get() && path !== ME,
  pause: platform.pause,
});
