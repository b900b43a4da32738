import { Plus } from "lucide-react";

import { type AgentView } from "../api/schema";
import { agents } from "../state/agents";
import { go } from "../state/route";
import { useStore } from "../state/store";
import { useWords } from "../words";

export function AgentPicker({ agent }: { agent: AgentView | undefined }) {
  const words = useWords();
  const all = useStore(agents);
  return (
    <div className="agent-picker">
      <select
        aria-label={words.agent}
        value={agent?.id ?? ""}
        onChange={(event) => go({ name: "new", agentId: event.target.value })}
      >
        {all.map((it) => (
          <option key={it.id} value={it.id}>
            {it.name}
          </option>
        ))}
      </select>
      <button type="button" className="quiet" onClick={() => go({ name: "agent", id: "new" })}>
        <Plus aria-hidden /> {words.newAgent}
      </button>
    </div>
  );
}
