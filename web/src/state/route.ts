/** Where in the page one is. In the fragment, so that it works wherever we are mounted. */

import { Store } from "./store";

export type Route =
  | { name: "new"; agentId: string | null }
  /** `seq`: the message that one came for; `branchId`: its id, where it is on another branch. */
  | { name: "conversation"; id: string; seq?: number; branchId?: string }
  | { name: "agents" }
  | { name: "agent"; id: string }
  | { name: "settings" }
  | { name: "briefings" }
  | { name: "usage" }
  /** An address that leads nowhere. */
  | { name: "missing" };

export function parseRoute(hash: string): Route {
  const [, name, id, seq = "", branchId] = hash.replace(/^#/, "").split("/");
  if (name === "c" && id) {
    if (!/^\d{1,15}$/.test(seq)) return { name: "conversation", id };
    return { name: "conversation", id, seq: Number(seq), ...(branchId && { branchId }) };
  }
  if (name === "agents") return id ? { name: "agent", id } : { name };
  if (name === "settings" || name === "usage" || name === "briefings") return { name };
  return name && name !== "new" ? { name: "missing" } : { name: "new", agentId: id || null };
}

export function hrefOf(route: Route): string {
  switch (route.name) {
    case "conversation":
      return ["#/c", route.id, route.seq, route.branchId].filter((it) => it !== undefined).join("/");
    case "agent":
      return `#/agents/${route.id}`;
    case "new":
      return route.agentId ? `#/new/${route.agentId}` : "#/";
    default:
      return `#/${route.name}`;
  }
}

export const route = new Store<Route>(parseRoute(location.hash));

/** Asks the user whether to leave; null where there is nothing to ask. */
type LeaveQuestion = () => Promise<boolean> | null;
let leaveQuestion: LeaveQuestion = () => null;

/** Asks this before the page goes elsewhere, until the returned function is called. */
export function askBeforeLeaving(question: LeaveQuestion): () => void {
  leaveQuestion = question;
  return () => {
    if (leaveQuestion === question) leaveQuestion = () => null;
  };
}

window.addEventListener("hashchange", () => {
  const next = parseRoute(location.hash);
  const here = hrefOf(route.get());
  const leaves = hrefOf(next) === here ? null : leaveQuestion();
  if (leaves === null) route.set(next);
  // The address is already the new one: who stays gets the old one back.
  else void leaves.then((yes) => (yes ? route.set(next) : history.pushState(null, "", here)));
});

/** The same place under another address, which takes the place of this one in the history. */
export function rename(next: Route): void {
  history.replaceState(null, "", hrefOf(next));
  route.set(next);
}

export function go(next: Route): void {
  location.hash = hrefOf(next);
}
