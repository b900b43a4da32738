/** Who is signed in. */

import { ApiError, Unreachable, get, setToken, token, whenSignedOut } from "../api/client";
import { type MeView } from "../api/schema";
import { forgetAttachments } from "./attachments";
import { forgetDrafts } from "./drafts";
import { go } from "./route";
import { Store } from "./store";

export type Session =
  | { state: "asking" }
  | { state: "away" }
  | { state: "out"; refused: boolean }
  | { state: "in"; me: MeView };

export const session = new Store<Session>({ state: "asking" });

whenSignedOut(() => {
  if (session.get().state !== "in") return;
  setToken(null);
  session.set({ state: "out", refused: true });
});

/** Asks who we are; without a sign-in everyone is `local`. */
export async function findOut(): Promise<void> {
  const tried = token.get() !== null;
  try {
    session.set({ state: "in", me: await get<MeView>("/api/me") });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      setToken(null);
      session.set({ state: "out", refused: tried });
    } else if (error instanceof Unreachable || error instanceof ApiError) {
      session.set({ state: "away" });
    } else throw error;
  }
}

export async function signIn(given: string): Promise<void> {
  setToken(given.trim().replace(/^Bearer\s+/i, ""));
  await findOut();
}

export function logOut(): void {
  setToken(null);
  forgetDrafts();
  forgetAttachments();
  go({ name: "new", agentId: null }); // the next person need not know where this one was
  session.set({ state: "out", refused: false });
}
