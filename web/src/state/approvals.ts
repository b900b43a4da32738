/** The open requests of all turns in the user's conversations. */

import { Store, type ApprovalsView, type ApprovalView } from "@threadkeep/client";

import { api } from "../api/api";

export const approvals = new Store<readonly ApprovalView[]>([]);

let asked = 0;

export async function refreshApprovals(): Promise<void> {
  const reading = ++asked;
  try {
    const { items } = await api.get<ApprovalsView>("/api/approvals");
    if (reading === asked) approvals.update((known) => (isSame(known, items) ? known : items));
  } catch {
    // Those that are known stay; they are read again soon.
  }
}

function isSame(known: readonly ApprovalView[], read: readonly ApprovalView[]): boolean {
  return known.length === read.length && known.every((it, index) => it.requestId === read[index]?.requestId);
}
