/** Removes copies of what the server no longer has, or no longer gives to this user. */

import { ApiError, type ConversationDetailView } from "@threadkeep/client";

import { api } from "../api/api";
import { conversations } from "../state/front-end";
import { conversationIn } from "./copy-limits";
import { device } from "./device";

/** Asks for each that is not in the list: it may be archived, or older than what was listed, or gone. */
export async function checkCopies(userId: string, signal: AbortSignal): Promise<void> {
  const copied = (await device.all()).filter(({ path }) => conversationIn(path));
  if (!copied.length) return;
  await conversations.refresh();
  const listed = new Set(conversations.state.get().items.map(({ id }) => id));
  for (const { path, at } of copied) {
    if (listed.has(conversationIn(path)!)) continue;
    try {
      const view = await api.get<ConversationDetailView>(path, {}, signal);
      if (view.status === "deleted") await device.drop(path);
      else await device.keep(userId, path, view, at);
    } catch (error) {
      if (!(error instanceof ApiError)) return; // later, when the server is back
      if (error.status === 404) await device.drop(path);
    }
  }
}
