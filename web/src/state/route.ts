/** Where in the page the user is. In the fragment, so that it works wherever we are mounted. */

import { Store } from "@threadkeep/client";

import { confirmation } from "./confirmation";

export type Route =
  | { name: "new"; agentId: string | null }
  /** `seq`: the message that the user opened; `branchId`: its id, if it is on another branch; `turnId`: the turn whose details are open. */
  | { name: "conversation"; id: string; seq?: number; branchId?: string; turnId?: string }
  /** `tab`: the tab of its settings, if not the first. */
  | { name: "agent"; id: string; tab?: AgentTab }
  | { name: Plain }
  /** A link that signs somebody in, whoever is signed in now. */
  | { name: "invitation"; token: string }
  /** An address that leads nowhere. */
  | { name: "missing" };

/** Pages that exist once. */
const PLAIN = ["agents", "archive", "briefings", "conversations", "deleted", "gateways", "import", "keys", "memory", "running", "settings", "usage", "users"] as const;
type Plain = (typeof PLAIN)[number];

const AGENT_TABS = ["prompt", "tools", "permissions", "documents", "feedback", "limits"] as const;
export type AgentTab = (typeof AGENT_TABS)[number];

export function parseRoute(hash: string): Route {
  const [, name, id, seq = "", branchId] = hash.replace(/^#/, "").split("/");
  if (name === "c" && id) {
    // Its third part is a message's number, or says that a turn's id follows.
    if (seq === "turn" && branchId) return { name: "conversation", id, turnId: branchId };
    if (!/^\d{1,15}$/.test(seq)) return { name: "conversation", id };
    return { name: "conversation", id, seq: Number(seq), ...(branchId && { branchId }) };
  }
  if (name === "agents" && id) {
    const tab = AGENT_TABS.find((it) => it === (seq === "advanced" ? "limits" : seq)); // as the tab is called
    return { name: "agent", id, ...(tab && { tab }) };
  }
  if (name === "invitation" && id) return { name, token: id };
  // Why a sign-in with a provider came to nothing; `pages/sign-in.tsx` says it.
  if (name?.startsWith("sign-in?")) return { name: "new", agentId: null };
  const plain = PLAIN.find((it) => it === name);
  if (plain) return { name: plain };
  return name && name !== "new" ? { name: "missing" } : { name: "new", agentId: id || null };
}

export function hrefOf(route: Route): string {
  switch (route.name) {
    case "conversation":
      if (route.turnId) return `#/c/${route.id}/turn/${route.turnId}`;
      return ["#/c", route.id, route.seq, route.branchId].filter((it) => it !== undefined).join("/");
    case "agent":
      return `#/agents/${route.id}${route.tab ? `/${route.tab}` : ""}`;
    case "invitation":
      return `#/invitation/${route.token}`;
    case "new":
      return route.agentId ? `#/new/${route.agentId}` : "#/";
    default:
      return `#/${route.name}`;
  }
}

export const route = new Store<Route>(parseRoute(location.hash));

/** Asks the user whether to leave; null if there is nothing to ask. */
type LeaveQuestion = () => Promise<boolean> | null;
let leaveQuestion: LeaveQuestion = () => null;

/** Asks this before the page goes elsewhere, until the returned function is called. */
export function askBeforeLeaving(question: LeaveQuestion): () => void {
  leaveQuestion = question;
  return () => {
    if (leaveQuestion === question) leaveQuestion = () => null;
  };
}

let changes = 0;

/** Shows what the address says, as it changes. */
export function followAddress(): void {
  window.addEventListener("hashchange", show);
}

function show(): void {
  const change = ++changes;
  confirmation.get()?.answer(false); // it was about the place that is left
  const next = parseRoute(location.hash);
  const here = hrefOf(route.get());
  const leaves = isSamePage(next, route.get()) ? null : leaveQuestion();
  if (leaves === null) route.set(next);
  else
    void leaves.then((yes) => {
      if (change !== changes) return; // the user has navigated on without an answer
      if (yes) route.set(next);
      // The address is already the new one: restore the old one if the user stays.
      else history.pushState(null, "", here);
    });
}

/** Whether going from one to the other keeps what was typed. */
function isSamePage(next: Route, here: Route): boolean {
  if (next.name === "agent" && here.name === "agent") return next.id === here.id;
  return hrefOf(next) === hrefOf(here);
}

/** The same place under another address, which replaces this one in the history. */
export function rename(next: Route): void {
  history.replaceState(null, "", hrefOf(next));
  route.set(next);
}

export function go(next: Route): void {
  location.hash = hrefOf(next);
}

/** Shows the details of a turn above the conversation; going back closes them. */
export function openTurn(turnId: string): void {
  const at = route.get();
  if (at.name !== "conversation" || !turnId || at.turnId === turnId) return;
  // What else the route says stays: the list does not move below the details.
  const next = { ...at, turnId };
  history.pushState({ isOpened: true }, "", hrefOf(next));
  route.set(next);
}

/** Closes them; a user who opened a link to them has nothing to go back to. */
export function closeTurn(): void {
  const at = route.get();
  if (at.name !== "conversation" || !at.turnId) return;
  const { turnId: _, ...conversation } = at;
  if ((history.state as { isOpened?: boolean } | null)?.isOpened) history.back();
  else history.replaceState(null, "", hrefOf(conversation));
  route.set(conversation);
}
