/** What the address says of a sign-in with a provider, and where one begins. */

import { api } from "../api/api";

const PROBLEM = "#/sign-in?";

/** Why the last one came to nothing, and with which provider; null if the address says nothing of it. */
export function signInProblem(): { code: string; provider: string | null } | null {
  if (!location.hash.startsWith(PROBLEM)) return null;
  const given = new URLSearchParams(location.hash.slice(PROBLEM.length));
  const code = given.get("problem");
  return code === null ? null : { code, provider: given.get("provider") };
}

/** Where a browser goes to sign in; it comes back to where it is now. */
export function signInHref(url: string): string {
  const here = location.hash.startsWith(PROBLEM) ? "" : location.hash;
  return api.url(url, { next: location.pathname + location.search + here }).href;
}
