/** Who is signed in. */

import { ApiError, Store, Unreachable, type MeView } from "@threadkeep/client";

import { api, setToken, token, whenUnauthorized } from "../api/api";
import { SiblingTabs, type TabMessage } from "../api/sibling-tabs";
import { forgetAttachments } from "./attachments";
import { confirmation } from "./confirmation";
import { forgetDrafts } from "./drafts";
import { closeOverlay } from "./overlay";
import { forgetModels } from "./models";
import { go } from "./route";
import { toasts } from "./toasts";

export type Session =
  | { state: "asking" }
  | { state: "unreachable" }
  | { state: "out"; refused: boolean }
  | { state: "in"; me: MeView };

/** Without sign-in everyone is `local`, and the token in the server's data folder is the only one. */
export const isLocal = document.documentElement.dataset["signsIn"] === "False";

export const session = new Store<Session>({ state: "asking" });

/** A tab responds within a few milliseconds, unless it is busy or asleep: then the user signs in by hand. */
const SIBLINGS_RESPOND_MS = 400;

const siblings = new SiblingTabs();
siblings.listen(hear);

whenUnauthorized(() => {
  if (session.get().state !== "in") return;
  const held = token.get();
  setToken(null);
  session.set({ state: "out", refused: held !== null });
});

/** Asks who we are; without a sign-in everyone is `local`. */
export async function loadSession(): Promise<void> {
  const tried = token.get();
  try {
    session.set({ state: "in", me: await api.get<MeView>("/api/me") });
    if (tried !== null) siblings.post({ type: "signed-in", token: tried });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      setToken(null);
      if (tried === null && session.get().state === "asking" && (await askOtherTabs())) return loadSession();
      session.set({ state: "out", refused: tried !== null });
    } else if (error instanceof Unreachable || error instanceof ApiError) {
      session.set({ state: "unreachable" });
    } else throw error;
  }
}

/** Whether another tab gave us its token. */
async function askOtherTabs(): Promise<boolean> {
  const given = await siblings.askForToken(SIBLINGS_RESPOND_MS);
  if (given !== null) setToken(given);
  return given !== null;
}

function hear(message: TabMessage): void {
  const now = session.get();
  const held = token.get();
  if (message.type === "asked" && now.state === "in" && held !== null) siblings.post({ type: "signed-in", token: held });
  if (message.type === "signed-in" && now.state === "out") void signIn(message.token);
  // Without sign-in we need no token until the user saves a program; from then on we do.
  if (message.type === "signed-in" && now.state === "in" && held === null) setToken(message.token);
  // A tab may have been opened for somebody else, with a link that has their token.
  if (message.type === "signed-out" && now.state === "in" && now.me.id === message.userId) end();
}

export async function signIn(given: string): Promise<void> {
  setToken(given.trim().replace(/^Bearer\s+/i, ""));
  await loadSession();
}

/** Signs out here and in the other tabs. */
export function signOut(): void {
  const now = session.get();
  if (now.state === "in") siblings.post({ type: "signed-out", userId: now.me.id });
  end();
}

function end(): void {
  setToken(null);
  forgetDrafts();
  forgetAttachments();
  forgetModels();
  // An overlay may show this user's data.
  confirmation.get()?.answer(false);
  closeOverlay();
  toasts.set([]);
  go({ name: "new", agentId: null }); // the next person need not know where this one was
  session.set({ state: "out", refused: false });
}
