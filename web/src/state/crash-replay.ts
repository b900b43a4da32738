/** The turn whose crash the user has just seen: its replay begins with it, and plays. */

let seen: string | null = null;

export function replayCrashOf(turnId: string): void {
  seen = turnId;
}

/** Whether its replay begins with its crash; only the next time it is opened. */
export function takesCrash(turnId: string): boolean {
  const isSeen = seen === turnId;
  if (isSeen) seen = null;
  return isSeen;
}
