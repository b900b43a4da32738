/** A document whose upload was cancelled must not stay, even if the server has already accepted it. */

import { type DocumentView, type PageView_DocumentView } from "@threadkeep/client";

import { api } from "./api";

/** The server may still be accepting the file, and its response may be lost. */
const LOOKS_AFTER_MS = [0, 1000, 3000, 10_000];

/** Looks for the document of a cancelled upload and deletes it; returns whether there was one. */
export async function removeCancelled(path: string, isIts: (document: DocumentView) => boolean, signal: AbortSignal): Promise<boolean> {
  for (const wait of LOOKS_AFTER_MS) {
    await api.pause(wait, signal);
    if (signal.aborted) return false;
    try {
      const newest = await api.get<PageView_DocumentView>(path, { limit: 100 }, signal);
      const left = newest.items.find(isIts);
      if (!left) continue;
      await api.send("DELETE", `${path}/${left.id}`);
      return true;
    } catch {
      // The server can't be reached, or somebody else has deleted it: it is looked for again.
    }
  }
  return false;
}
