import { type AgentView } from "@threadkeep/client";
import { expect, it } from "vitest";

import { publisherOf } from "../../src/state/agents";

const ALICE = { state: "in", me: { id: "alice", role: "user", installation: "a" } } as const;

function agent(ownerId: string | null): AgentView {
  return {
    id: "1",
    name: "Assistant",
    description: "",
    visibility: "public",
    isDefault: ownerId === null,
    createdAt: "",
    updatedAt: "",
    ownerId,
  };
}

it("names the owner of an agent that somebody else has published", () => {
  expect(publisherOf(agent("mallory"), ALICE)).toBe("mallory");
  expect(publisherOf(agent("alice"), ALICE)).toBeNull();
  expect(publisherOf(agent(null), ALICE)).toBeNull();
});
