/** The open requests of all turns in the user's conversations. */

import { type ApiClient } from "../api-client.ts";
import { type ApprovalsView, type ApprovalView } from "../schema.ts";
import { Store } from "../store.ts";

export class OpenApprovals {
  readonly items = new Store<readonly ApprovalView[]>([]);
  #asked = 0;

  constructor(private readonly api: ApiClient) {}

  refresh = async (): Promise<void> => {
    const reading = ++this.#asked;
    try {
      const { items } = await this.api.get<ApprovalsView>("/api/approvals");
      if (reading === this.#asked) this.items.update((known) => (isSame(known, items) ? known : items));
    } catch {
      // Those that are known stay; they are read again soon.
    }
  };

  /** Empties the list when the user signs out. */
  forget(): void {
    this.#asked++;
    this.items.set([]);
  }
}

function isSame(known: readonly ApprovalView[], read: readonly ApprovalView[]): boolean {
  return known.length === read.length && known.every((it, index) => it.requestId === read[index]?.requestId);
}
