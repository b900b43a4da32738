/** What degraded in a turn, from its notices. Pure. */

import { type PartOf } from "./parts";

type Notice = PartOf<"notice">;

/** An unavailable MCP server; the turn continued without it. */
export interface AwayServer {
  name: string;
  reason: string;
}

/** The name has no field of its own: it is in the message. */
const AWAY = /^(?:Couldn.t connect to )?([\w.-]+)(?: is away| cannot be reached)?(?:[:;,.]\s*([^]*))?$/;

/** The unavailable servers and the other notices, each once. */
export function awayServers(notices: readonly Notice[]): { away: AwayServer[]; others: string[] } {
  const away = new Map<string, AwayServer>();
  const others = new Set<string>();
  for (const { code, message } of notices) {
    const [, name, reason = ""] = (code === "MCP_SERVER_UNAVAILABLE" && AWAY.exec(message)) || [];
    if (name) away.set(name, { name, reason });
    else others.add(message);
  }
  return { away: [...away.values()], others: [...others] };
}
