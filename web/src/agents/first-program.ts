/** The first program of a server without sign-in: from then on, every request needs the server's token. */

import { ApiError, type AgentPreviewView, type McpServerSettingsView } from "@threadkeep/client";

import { api, isLocal } from "../api/api";

type Servers = Record<string, McpServerSettingsView>;

/** Whether saving these servers makes the server require its token; throws the error if it doesn't accept them. */
export async function makesTokenDue(agentId: string, servers: Servers): Promise<boolean> {
  if (!Object.values(servers).some(({ command }) => command)) return false;
  const body = { settings: { mcpServers: servers } };
  return (await api.send<AgentPreviewView>("POST", `/api/agents/${agentId}/preview`, body)).requiresToken;
}

/** Whether a program was refused because this page doesn't have the token. */
export function lacksToken(error: unknown): boolean {
  return isLocal && error instanceof ApiError && error.code === "FORBIDDEN" && !!error.param?.startsWith("settings.mcpServers");
}
