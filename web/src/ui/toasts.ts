/** Short messages at the edge that disappear by themselves. */

import { Store } from "@threadkeep/client";

export interface Toast {
  id: number;
  text: string;
  action?: { label: string; run: () => void };
}

const SHOWN_MS = 8000;
const LOOK_AGAIN_MS = 1000;

export const toasts = new Store<readonly Toast[]>([]);
let count = 0;

export function toast(text: string, action?: Toast["action"]): void {
  const id = ++count;
  toasts.update((all) => [...all.slice(-2), { id, text, action }]);
  setTimeout(() => expire(id), SHOWN_MS);
}

/** One that the user points at, or whose button has the focus, stays. */
function expire(id: number): void {
  if (document.querySelector(".toasts:is(:hover, :focus-within)")) setTimeout(() => expire(id), LOOK_AGAIN_MS);
  else dismissToast(id);
}

export function dismissToast(id: number): void {
  toasts.update((all) => all.filter((it) => it.id !== id));
}
