/** What sets the calls of a turn apart. Pure. */

import { previewsOf, type Previewed } from "./activity";

export interface Named extends Previewed {
  toolName: string;
  server: string;
}

/** For each call what sets it apart from others of its tool. */
export function previewsByCall<It extends Named>(calls: readonly It[]): ReadonlyMap<It, string> {
  const isSame = (one: It, other: It) => one.toolName === other.toolName && one.server === other.server;
  return new Map(
    calls.map((call) => {
      const same = calls.filter((it) => isSame(it, call));
      return [call, previewsOf(same)[same.indexOf(call)]!];
    }),
  );
}
