/** The token of a server on which nobody signs in: how this browser and others come by it. */

import { token } from "../api/api";

const USUAL_PORT = "8710";

/** The command that opens this page with the token. */
export function openCommand(): string {
  const { port } = location;
  return port && port !== USUAL_PORT ? `threadkeep open --port ${port}` : "threadkeep open";
}

/** The address that `threadkeep open` opens; null if this page has no token. */
export function linkWithToken(): string | null {
  const held = token.get();
  return held === null ? null : `${new URL(".", document.baseURI).href}#token=${held}`;
}
