/** Who is signed in. */

import { ApiError, Store, suspenderIn, Unreachable, type MeView } from "@threadkeep/client";

import { api, dropGivenToken, isEmbedded, isUnconfirmed, ME, noteUser, setToken, token, whenUnauthorized } from "../api/api";
import { checkInstallation, keyHere } from "../api/installation";
import { SiblingTabs, type TabMessage } from "../api/sibling-tabs";
import { clearCopies, forgetCopies, lastUser, ownCopies, readCopiesOf } from "../offline/device-copies";
import { store } from "../offline/storage";
import { toasts } from "../ui/toasts";
import { forgetAttachments, forgetUnkept } from "./attachments";
import { confirmation } from "./confirmation";
import { forgetDrafts, forgetUnwritten } from "./drafts";
import { doubtModelState, forgetModels } from "./models";
import { closeOverlay } from "./overlay";
import { go } from "./route";

/** What the server no longer accepts, or never did; or who keeps the user out. */
export type Refused = "token" | "session" | "suspendedByAdmin" | "suspendedByProvider" | null;

export type Session =
  | { state: "asking" }
  | { state: "unreachable" }
  | { state: "out"; refused: Refused }
  | { state: "in"; me: MeView };

export const session = new Store<Session>({ state: "asking" });

/** Where nobody signs in, everyone is this user. */
const LOCAL = "local";

/** If the server takes longer to say who we are, the page shows its copies until it does. */
const PATIENCE_MS = 5000;

/** Where the user is signed in by cookies. */
export const SESSIONS = "/api/me/sessions";

/** The user of this tab's token: a device may have another one's copies. */
const USER = keyHere("user");

/** Whose drafts this browser has. */
const DRAFTS_OF = keyHere("drafts-of");

/** A tab responds within a few milliseconds, unless it is busy or asleep: then the user signs in by hand. */
const SIBLINGS_RESPOND_MS = 400;

const siblings = new SiblingTabs();

/** Whether a cookie signs this browser in: then no token is sent, and only the server can sign out. */
export function isByCookie(): boolean {
  const now = session.get();
  return now.state === "in" && now.me.id !== LOCAL && token.get() === null && !isEmbedded();
}

/** Hears of sign-ins in other tabs, and of the server when it no longer accepts ours. */
export function followSession(): void {
  siblings.listen(hear);
  session.subscribe(() => {
    const now = session.get();
    noteUser(now.state === "in" ? now.me.id : null);
  });
  whenUnauthorized((error) => {
    if (session.get().state !== "in") return;
    const refused = suspensionIn(error) ?? (token.get() !== null ? "token" : isByCookie() ? "session" : null);
    isUnconfirmed.set(false);
    setToken(null);
    clearCopies();
    session.set({ state: "out", refused });
  });
}

function suspensionIn(error: unknown): Refused {
  const suspender = suspenderIn(error);
  return suspender && (suspender === "admin" ? "suspendedByAdmin" : "suspendedByProvider");
}

let began = 0;
/** The latest of those that have a result: what an earlier one hears after that is old. */
let answered = 0;

/** Asks who we are; without a sign-in everyone is `local`. */
export async function loadSession(): Promise<void> {
  const attempt = ++began;
  const tried = token.get();
  const slow = setTimeout(() => void openCopies(tried), PATIENCE_MS);
  try {
    const me = await api.get<MeView>(ME);
    if (attempt < answered) return;
    answered = attempt;
    checkInstallation(me);
    if (isForAnother(me) && dropGivenToken(tried)) return loadSession();
    isUnconfirmed.set(false);
    const before = session.get();
    if (before.state === "in" && before.me.id !== me.id) forgetUser();
    ownDrafts(me);
    ownCopies(me);
    session.set({ state: "in", me });
    if (isByCookie() && !(before.state === "in" && before.me.id === me.id)) siblings.post({ type: "session", userId: me.id });
    if (tried === null) return;
    sessionStorage.setItem(USER, me.id);
    siblings.post({ type: "signed-in", token: tried });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) {
      if (attempt < answered) return;
      answered = attempt;
      if (dropGivenToken(tried)) return loadSession();
      isUnconfirmed.set(false);
      setToken(null);
      if (tried === null && session.get().state === "asking" && (await askOtherTabs())) return loadSession();
      if (attempt < answered) return; // somebody has signed in meanwhile
      clearCopies();
      const now = session.get();
      const before = now.state === "out" ? now.refused : null;
      session.set({ state: "out", refused: suspensionIn(error) ?? (tried !== null ? "token" : before) });
    } else if (error instanceof Unreachable || error instanceof ApiError) {
      if (session.get().state !== "in" && !(error instanceof Unreachable && (await openCopies(tried)))) session.set({ state: "unreachable" });
    } else throw error;
  } finally {
    clearTimeout(slow);
  }
}

/** Without the server, shows the copies on this device; false if there are none of this user's. */
async function openCopies(tried: string | null): Promise<boolean> {
  const me = await lastUser();
  if (!me || (tried !== null && sessionStorage.getItem(USER) !== me.id) || session.get().state !== "asking") return false;
  readCopiesOf(me);
  doubtModelState();
  isUnconfirmed.set(true);
  session.set({ state: "in", me });
  return true;
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
  // A cookie is every tab's; one with a token of its own doesn't send it.
  if (message.type === "session" && held === null && !(now.state === "in" && now.me.id === message.userId)) void loadSession();
  // Without sign-in we need no token until the user saves a program; from then on we do.
  if (message.type === "signed-in" && now.state === "in" && held === null && !isByCookie()) setToken(message.token);
  // A tab may have been opened for somebody else, with a link that has their token.
  if (message.type === "signed-out" && now.state === "in" && now.me.id === message.userId) end();
}

export async function signIn(given: string): Promise<void> {
  setToken(given.trim().replace(/^Bearer\s+/i, ""));
  await loadSession();
}

/** A cookie signs this browser in now, whoever this tab's token is of. */
export async function enterByCookie(): Promise<void> {
  setToken(null);
  sessionStorage.removeItem(USER);
  await loadSession();
}

/** Has the server end this browser's session, or all of the user's; a cookie stays where it can't be reached. */
export async function endSession(everywhere = false): Promise<void> {
  if (!everywhere && !isByCookie()) return;
  try {
    await api.send("DELETE", everywhere ? SESSIONS : `${SESSIONS}/current`);
  } catch (error) {
    // It has ended by itself.
    if (!(error instanceof ApiError && (error.status === 401 || error.status === 404))) throw error;
  }
}

/** Signs out here and in the other tabs. */
export function signOut(): void {
  const now = session.get();
  if (now.state === "in") siblings.post({ type: "signed-out", userId: now.me.id });
  end();
}

function end(): void {
  setToken(null);
  sessionStorage.removeItem(USER);
  forgetCopies();
  forgetDrafts();
  forgetAttachments();
  forgetUser();
  session.set({ state: "out", refused: null });
}

/** Whether this browser has something of another user, which would be deleted. */
function isForAnother(me: MeView): boolean {
  return (localStorage.getItem(DRAFTS_OF) ?? me.id) !== me.id;
}

/** Drafts of the user before are deleted, once: another tab may have drafts of this one already. */
function ownDrafts(me: MeView): void {
  const owner = localStorage.getItem(DRAFTS_OF);
  if (owner === me.id) return;
  if (owner !== null) {
    forgetDrafts();
    forgetAttachments();
  }
  store(DRAFTS_OF, me.id);
}

/** Forgets what this tab shows and knows of a user, before the next one is shown. */
function forgetUser(): void {
  session.set({ state: "asking" });
  forgetUnwritten();
  forgetUnkept();
  forgetModels();
  // An overlay may show this user's data.
  confirmation.get()?.answer(false);
  closeOverlay();
  toasts.set([]);
  go({ name: "new", agentId: null }); // the next person need not know where this one was
}
