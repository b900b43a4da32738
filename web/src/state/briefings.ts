/** What agents have told one: newest first. */

import { get } from "../api/client";
import { ROUTES } from "../api/schema";
import { Store } from "./store";

export interface BriefingItem {
  id: string;
  agentId: string;
  title: string;
  summary: string;
  priority: string;
  createdAt: string;
  readAt?: string | null;
}

export const hasBriefings = ROUTES.has("GET /api/briefings");
export const briefings = new Store<readonly BriefingItem[] | null>(null);

export async function refreshBriefings(): Promise<void> {
  if (!hasBriefings) return;
  const page = await get<{ items: BriefingItem[] }>("/api/briefings", { limit: 100 });
  briefings.set(page.items);
}
