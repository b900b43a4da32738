/** What only some surroundings have. Without it a front end works, too: in Node, or where a browser forbids something. */

import { type Copies } from "./copies.ts";
import { type EntryStore, type OtherTabs } from "./outbox/ports.ts";
import { type Pause } from "./pause.ts";
import { type FollowUserEvents } from "./user-events.ts";

export interface Platform {
  /** Where what the user sent outlives the program until the server has it. */
  store?: EntryStore;
  /** Where what the server said outlives the program. */
  copies?: Copies;
  tabs?: OtherTabs;
  pause?: Pause;
  onReturn?: OnReturn;
  /** Calls `draw` when the screen is drawn next. */
  atNextFrame?: (draw: () => void) => void;
  followUserEvents?: FollowUserEvents;
}

/** Calls `look` whenever the user returns to the program, until the signal is aborted. */
export type OnReturn = (look: () => void, signal: AbortSignal) => void;
