import { type AgentView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { Plus } from "lucide-react";

import { agents, publisherOf } from "../state/agents";
import { go } from "../state/route";
import { session } from "../state/session";
import { useWords } from "../words";

export function AgentPicker({ agent }: { agent: AgentView | undefined }) {
  const words = useWords();
  const all = useStore(agents);
  const who = useStore(session);
  const nameOf = (it: AgentView) => {
    const publisher = publisherOf(it, who);
    return publisher === null ? it.name : words.nameByOwner(it.name, publisher);
  };
  return (
    <div className="agent-picker">
      <select
        aria-label={words.agent}
        value={agent?.id ?? ""}
        onChange={(event) => go({ name: "new", agentId: event.target.value })}
      >
        {all.map((it) => (
          <option key={it.id} value={it.id}>
            {nameOf(it)}
          </option>
        ))}
      </select>
      <button type="button" className="quiet" onClick={() => go({ name: "agent", id: "new" })}>
        <Plus aria-hidden /> {words.newAgent}
      </button>
    </div>
  );
}
