import { type ApiClient } from "./api-client.ts";
import { ApiError } from "./errors.ts";
import { type AgentView } from "./schema.ts";

/** The agent of those who choose none. */
export async function defaultAgentId(api: ApiClient): Promise<string> {
  for await (const { id, isDefault } of api.list<AgentView>("/api/agents")) if (isDefault) return id;
  throw new ApiError(404, "AGENT_NOT_FOUND", "There is no default agent.");
}
