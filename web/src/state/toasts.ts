/** Short words at the edge that go away by themselves. */

import { Store } from "./store";

export interface Toast {
  id: number;
  text: string;
  action?: { label: string; run: () => void };
}

const SHOWN_MS = 8000;

export const toasts = new Store<readonly Toast[]>([]);
let count = 0;

export function toast(text: string, action?: Toast["action"]): void {
  const id = ++count;
  toasts.update((all) => [...all.slice(-2), { id, text, action }]);
  setTimeout(() => dismissToast(id), SHOWN_MS);
}

export function dismissToast(id: number): void {
  toasts.update((all) => all.filter((it) => it.id !== id));
}
