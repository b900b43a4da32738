import "../styles/memory.css";

import { useStore } from "@threadkeep/react";
import { useState } from "react";

import { TopBar } from "../chat/top-bar";
import { agents, chosenAgent } from "../state/agents";
import { useAgentItems } from "../state/use-agent-items";
import { AgentFace } from "../ui/agent-face";
import { Field } from "../ui/field";
import { Picker } from "../ui/picker";
import { useMemoryWords } from "../words/memory";
import { Instructions } from "./instructions";
import { MemoryList } from "./memory-list";

/** What the user tells every agent, and what agents remember about the user. */
export function MemoryPage({ onMenu }: { onMenu: () => void }) {
  const memoryWords = useMemoryWords();
  const all = useStore(agents);
  const [agentId, setAgentId] = useState<string | null>(null);
  const agent = chosenAgent(all, agentId);
  const items = useAgentItems(agent?.id ?? null, ({ id }) => setAgentId(id));
  return (
    <div className="page">
      <TopBar title={memoryWords.title} onMenu={onMenu} />
      <div className="content settings memory">
        <p className="hint">{memoryWords.intro}</p>
        <Instructions />
        <section aria-labelledby="memory-remembered">
          <h2 id="memory-remembered">{memoryWords.remembered}</h2>
          {agent && (
            <>
              <Field label={memoryWords.agent}>
                <Picker name={memoryWords.agent} shown={agent.name} face={<AgentFace agent={agent} />} groups={[{ items }]} />
              </Field>
              <MemoryList key={agent.id} agent={agent} />
            </>
          )}
        </section>
      </div>
    </div>
  );
}
