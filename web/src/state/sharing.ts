/** What the user is about to share. */

import { Store } from "@threadkeep/client";

export interface ToShare {
  conversationId: string;
  /** Its last message; without one, the latest. */
  messageId?: string;
}

export const toShare = new Store<ToShare | null>(null);

/** Who may open what is shared here: nobody, users, or everyone with the link. */
export const sharing = document.documentElement.dataset["sharing"] ?? "users";
export const canShare = sharing !== "off";
