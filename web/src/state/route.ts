/** Where in the page one is. In the fragment, so that it works wherever we are mounted. */

import { Store } from "./store";

export type Route =
  | { name: "new"; agentId: string | null }
  /** `seq`: the message that one came for. */
  | { name: "conversation"; id: string; seq?: number }
  | { name: "agent"; id: string }
  | { name: "briefings" }
  | { name: "usage" };

export function parseRoute(hash: string): Route {
  const [, name, id, seq = ""] = hash.replace(/^#/, "").split("/");
  if (name === "c" && id) return /^\d{1,15}$/.test(seq) ? { name: "conversation", id, seq: Number(seq) } : { name: "conversation", id };
  if (name === "agents" && id) return { name: "agent", id };
  if (name === "usage" || name === "briefings") return { name };
  return { name: "new", agentId: name === "new" && id ? id : null };
}

export function hrefOf(route: Route): string {
  switch (route.name) {
    case "conversation":
      return route.seq === undefined ? `#/c/${route.id}` : `#/c/${route.id}/${route.seq}`;
    case "agent":
      return `#/agents/${route.id}`;
    case "usage":
    case "briefings":
      return `#/${route.name}`;
    case "new":
      return route.agentId ? `#/new/${route.agentId}` : "#/";
  }
}

export const route = new Store<Route>(parseRoute(location.hash));

window.addEventListener("hashchange", () => route.set(parseRoute(location.hash)));

export function go(next: Route): void {
  location.hash = hrefOf(next);
}
