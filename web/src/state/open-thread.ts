import { Thread } from "@threadkeep/client";

import { api, socket } from "../api/api";
import { markExpired } from "./attachments";
import { markTurnEnded } from "./conversations";
import { atNextFrame } from "./next-frame";
import { outbox } from "./outbox";
import { onUserEvent } from "./user-events";

/** A conversation as this page opens it. */
export function openThread(id: string): Thread {
  return new Thread(id, { api, socket, outbox, watch, atNextFrame, onTurnEnded: markTurnEnded, onFileMissing: markExpired });
}

/** Looks again when another tab has changed the conversation, and when the user returns to the page. */
function watch(conversationId: string, look: () => void): () => void {
  const closing = new AbortController();
  const { signal } = closing;
  const lookIfSeen = () => {
    if (!document.hidden) look();
  };
  const forget = onUserEvent((event) => {
    if (event.type === "conversation_changed" && event.conversationId === conversationId) lookIfSeen();
  });
  window.addEventListener("focus", lookIfSeen, { signal });
  document.addEventListener("visibilitychange", lookIfSeen, { signal });
  return () => {
    closing.abort();
    forget();
  };
}
