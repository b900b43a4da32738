/** The open requests of all turns in the user's conversations. */

import { type ApiClient } from "../api-client.ts";
import { type ApprovalsView, type ApprovalView } from "../schema.ts";
import { Store } from "../store.ts";

export class OpenApprovals {
  readonly items = new Store<readonly ApprovalView[]>([]);
  /** Counts reads: a response older than the shown one is too late. */
  #readings = { asked: 0, shown: 0 };

  constructor(private readonly api: ApiClient) {}

  /** Resolves once the list is as new as this call, or newer. */
  refresh = async (): Promise<void> => {
    const reading = ++this.#readings.asked;
    try {
      const { items } = await this.api.get<ApprovalsView>("/api/approvals");
      if (reading < this.#readings.shown) return;
      this.#readings.shown = reading;
      this.items.update((known) => (isSame(known, items) ? known : items));
    } catch {
      // Those that are known stay; they are read again soon.
    }
  };

  /** Empties the list when the user signs out. */
  forget(): void {
    this.#readings.shown = ++this.#readings.asked;
    this.items.set([]);
  }
}

function isSame(known: readonly ApprovalView[], read: readonly ApprovalView[]): boolean {
  return known.length === read.length && known.every((it, index) => it.requestId === read[index]?.requestId);
}
