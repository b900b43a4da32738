/** The agents that the user may talk to. */

import { Store, type AgentView, type PageView_AgentView } from "@threadkeep/client";

import { api } from "../api/api";
import { copies } from "../offline/device-copies";
import { type Session } from "./session";

export const agents = new Store<readonly AgentView[]>([]);

const PATH = "/api/agents";

export async function refreshAgents(): Promise<void> {
  try {
    const found = await readAgents();
    agents.set(found);
    copies.keep(PATH, found);
  } catch (error) {
    const copy = agents.get().length ? undefined : await copies.read<AgentView[]>(PATH);
    if (copy && !agents.get().length) agents.set(copy);
    throw error;
  }
}

async function readAgents(): Promise<AgentView[]> {
  const found: AgentView[] = [];
  let cursor: string | null = null;
  do {
    const page: PageView_AgentView = await api.get(PATH, { limit: 200, cursor });
    found.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor);
  return found;
}

const asked = new Set<string>();

/** Loads the agents again if one of these is missing, since another tab may have created it; asks once for each. */
export function loadUnknownAgents(ids: readonly string[]): void {
  const unknown = ids.filter((id) => !asked.has(id) && !agents.get().some((it) => it.id === id));
  if (!unknown.length) return;
  for (const id of unknown) asked.add(id);
  refreshAgents().catch(() => unknown.forEach((id) => asked.delete(id)));
}

/** In the order in which people look for one: the default agent, their own and others', the Guide. */
export function inOrder(all: readonly AgentView[]): AgentView[] {
  const rankOf = (it: AgentView) => (it.isDefault ? 0 : isGuide(it) ? 2 : 1);
  return [...all].sort((one, other) => rankOf(one) - rankOf(other));
}

/** The requested agent, even if it isn't in the list yet; never another one. */
export function chosenAgent(all: readonly AgentView[], id: string | null): AgentView | undefined {
  return id === null ? (all.find((it) => it.isDefault) ?? all[0]) : all.find((it) => it.id === id);
}

export function agentName(all: readonly AgentView[], id: string | undefined): string {
  return all.find((it) => it.id === id)?.name ?? "";
}

/** An agent's name in a list; an ellipsis while the agents load, since none of them is gone until then. */
export function listedAgentName(all: readonly AgentView[], id: string | undefined, deleted: string): string {
  return agentName(all, id) || (id && !all.length ? "…" : deleted);
}

/** Whose agent it is, if somebody else published it; nobody owns the default one. */
export function publisherOf(agent: AgentView, session: Session): string | null {
  const isOwn = session.state === "in" && agent.ownerId === session.me.id;
  return isOwn ? null : agent.ownerId;
}

/** Whether it is the agent that shows everything without a model; the server always gives it this id. */
export function isGuide(agent: AgentView | undefined): boolean {
  return agent?.id === "01900000-0000-7000-8000-00000000901d";
}

/** Whether an agent answers without the server's model: the guide, a program, which decides itself, and one elsewhere. */
export function needsNoModel(agent: AgentView | undefined): boolean {
  return isGuide(agent) || (agent?.engine !== undefined && agent.engine.kind !== "config");
}

/** The name of an agent; empty for the default one, whose conversations do not mention it. */
export function otherAgentName(all: readonly AgentView[], id: string): string {
  return all.find((it) => it.id === id)?.isDefault ? "" : agentName(all, id);
}
