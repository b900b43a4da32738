/** What turns wait for, over all of one's conversations. */

import { get } from "../api/client";
import { type ApprovalsView, type ApprovalView } from "../api/schema";
import { Store } from "./store";

export const approvals = new Store<readonly ApprovalView[]>([]);

let asked = 0;

export async function refreshApprovals(): Promise<void> {
  const reading = ++asked;
  try {
    const { items } = await get<ApprovalsView>("/api/approvals");
    if (reading === asked) approvals.update((known) => (isSame(known, items) ? known : items));
  } catch {
    // Those that are known stay; they are read again soon.
  }
}

function isSame(known: readonly ApprovalView[], read: readonly ApprovalView[]): boolean {
  return known.length === read.length && known.every((it, index) => it.requestId === read[index]?.requestId);
}

/** Requests are answered elsewhere, too, and expire. */
const LOOK_EVERY_MS = 30_000;

/** Reads them now, every now and then while the page is seen, and when one comes back to it. */
export function watchApprovals(): () => void {
  const look = () => {
    if (!document.hidden) void refreshApprovals();
  };
  look();
  const timer = setInterval(look, LOOK_EVERY_MS);
  document.addEventListener("visibilitychange", look);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", look);
  };
}
