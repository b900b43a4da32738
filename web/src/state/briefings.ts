/** The user's briefings, newest first. */

import { Store, type BriefingView, type PageView_BriefingView } from "@threadkeep/client";

import { api } from "../api/api";

export const briefings = new Store<readonly BriefingView[] | null>(null);

export async function refreshBriefings(): Promise<void> {
  try {
    const page = await api.get<PageView_BriefingView>("/api/briefings", { limit: 100 });
    briefings.set(page.items);
  } catch {
    // Keep the known ones; they are loaded again when the user returns to the page.
  }
}
