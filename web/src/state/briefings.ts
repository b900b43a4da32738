/** The user's briefings, newest first. */

import { get } from "../../packages/client/src/api-client";
import { type BriefingView, type PageView_BriefingView } from "../../packages/client/src/schema";
import { Store } from "./store";

export const briefings = new Store<readonly BriefingView[] | null>(null);

export async function refreshBriefings(): Promise<void> {
  try {
    const page = await get<PageView_BriefingView>("/api/briefings", { limit: 100 });
    briefings.set(page.items);
  } catch {
    // Keep the known ones; they are loaded again when the user returns to the page.
  }
}
