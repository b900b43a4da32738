/** What degraded in a turn, from its notices. Pure. */

import { type PartOf } from "@threadkeep/client";

type Notice = PartOf<"notice">;

/** An unavailable MCP server; the turn continued without it. */
export interface UnreachableServer {
  name: string;
  reason: string;
}

/** The name has no field of its own: it is in the message. */
const UNAVAILABLE_MESSAGE = /^(?:Couldn.t connect to )?([\w.-]+)(?: is away| cannot be reached)?(?:[:;,.]\s*([^]*))?$/;

/** The key of a program that isn't connected is in the message, too. */
const ABSENT_PROGRAM = /\((.+)\)/;

/** The program that a notice waits for, if it does. */
export function absentProgram({ code, message }: Notice): string | undefined {
  return code === "AGENT_ABSENT" ? ABSENT_PROGRAM.exec(message)?.[1] : undefined;
}

/** The unavailable servers and the other notices, each once. */
export function unreachableServers(notices: readonly Notice[]): { unreachable: UnreachableServer[]; others: string[] } {
  const unreachable = new Map<string, UnreachableServer>();
  const others = new Set<string>();
  for (const { code, message } of notices) {
    const [, name, reason = ""] = (code === "MCP_SERVER_UNAVAILABLE" && UNAVAILABLE_MESSAGE.exec(message)) || [];
    if (name) unreachable.set(name, { name, reason });
    else others.add(message);
  }
  return { unreachable: [...unreachable.values()], others: [...others] };
}
