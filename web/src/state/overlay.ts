/** The overlay: the palette, or the list of shortcuts. */

import { Store } from "@threadkeep/client";

export type Overlay = "palette" | "shortcuts";

export const overlay = new Store<Overlay | null>(null);

export function closeOverlay(): void {
  overlay.set(null);
}

/** The key for commands, as this machine's keyboard names it. */
export const COMMAND = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘" : "Ctrl";
