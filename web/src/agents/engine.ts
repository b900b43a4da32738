/** What runs an agent: configuration, or a program. */

import { type AgentBody, type AgentView, type EngineView } from "@threadkeep/client";

/** The program that an agent is; of others' agents only its status. */
export function codeOf({ engine }: Pick<AgentBody | AgentView, "engine">): EngineView | null {
  return engine?.kind === "code" ? engine : null;
}

/** The host of the server that runs an agent, if another one does. */
export function remoteHostOf({ engine }: Pick<AgentView, "engine">): string | null {
  return (engine?.kind === "ag-ui" && engine.host) || null;
}

/** Whether the agent's code declares a field or a setting, so that nobody changes it here. */
export function isDeclared(agent: AgentBody | AgentView, name: string): boolean {
  const readOnly = ("readOnly" in agent && agent.readOnly) || [];
  return readOnly.includes(name) || readOnly.includes(`settings.${name}`);
}
