/** What has degraded in a turn, as its notices tell it. Pure. */

import { type PartOf } from "./parts";

type Notice = PartOf<"notice">;

/** An MCP server that did not come; the turn went on without it. */
export interface AwayServer {
  name: string;
  reason: string;
}

/** The server has no field for the name: it stands in the message. */
const AWAY = /^(?:Couldn.t connect to )?([\w.-]+)(?: is away| cannot be reached)?(?:[:;,.]\s*([^]*))?$/;

/** The servers that did not come, and what else was told, each once. */
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
