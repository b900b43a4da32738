import { type AgentView } from "@threadkeep/client";
import { ChevronDown, Plus } from "lucide-react";

import { go } from "../../state/route";
import { useAgentItems } from "../../state/use-agent-items";
import { AgentFace } from "../../ui/agent-face";
import { Menu } from "../../ui/menu";
import { useWords } from "../../words";

/** Chooses the agent that gets the first message. */
export function AgentPicker({ agent }: { agent: AgentView | undefined }) {
  const words = useWords();
  const items = useAgentItems(agent?.id ?? null, ({ id, isDefault }) => go({ name: "new", agentId: isDefault ? null : id }));
  if (!agent) return null;
  const making = { label: words.newAgent, icon: Plus, run: () => go({ name: "agent", id: "new" }) };
  return (
    <Menu label={words.chooseAgent(agent.name)} className="quiet picker" hasTip={false} groups={[{ items }, { items: [making] }]}>
      <AgentFace agent={agent} />
      <span>{agent.name}</span>
      <ChevronDown aria-hidden />
    </Menu>
  );
}
