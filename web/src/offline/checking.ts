/** Removes copies of what the server no longer has, or no longer gives to this user. */

import { ApiError, type ConversationDetailView, type ConversationView } from "@threadkeep/client";

import { api } from "../api/api";
import { conversationIn } from "./copy-limits";
import { device } from "./device";

const PATH = "/api/conversations";
/** Who has more conversations than this has few copies of those further down. */
const MOST_LISTED = 500;

/** Looks for the copied conversations in the list, which has archived ones, too: mostly, its first page has them all. */
export async function checkCopies(signal: AbortSignal): Promise<void> {
  const unseen = new Set((await device.all()).map(({ path }) => conversationIn(path)).filter((it) => it !== undefined));
  if (!unseen.size) return;
  let listed = 0;
  for await (const { id } of api.list<ConversationView>(PATH)) {
    unseen.delete(id);
    if (!unseen.size || ++listed === MOST_LISTED || signal.aborted) break;
  }
  for (const id of unseen) if (await isGone(id, signal)) await device.drop(`${PATH}/${id}`);
}

async function isGone(id: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await api.get<ConversationDetailView>(`${PATH}/${id}`, {}, signal)).status === "deleted";
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return true;
    throw error;
  }
}
