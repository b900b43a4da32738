import { requestProblemOf, type AgentView, type MeView, type Problem } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { Plus } from "lucide-react";
import { useEffect, useRef, useState } from "react";

import { TopBar } from "../chat/top-bar";
import { useRowFocus } from "../hooks/use-row-focus";
import { agents, refreshAgents } from "../state/agents";
import { go } from "../state/route";
import { Field } from "../ui/field";
import { describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";
import { AgentCard } from "./agent-card";

/** Up to this many need no filter. */
const MOST_UNFILTERED = 8;

export function AgentsPage({ me, onMenu }: { me: MeView; onMenu: () => void }) {
  const words = useWords();
  const agentWords = useAgentWords();
  const all = useStore(agents);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [wanted, setWanted] = useState("");
  const cards = useRef<HTMLUListElement>(null);
  useRowFocus(cards);
  const read = () => {
    refreshAgents()
      .then(() => setProblem(null))
      .catch((error: unknown) => setProblem(requestProblemOf(error)));
  };
  useEffect(read, []);
  const shown = all.filter((it) => matches(it, wanted));
  return (
    <div className="page">
      <TopBar title={words.agents} onMenu={onMenu}>
        <button type="button" className="primary" onClick={() => go({ name: "agent", id: "new" })}>
          <Plus aria-hidden /> {words.newAgent}
        </button>
      </TopBar>
      <div className="content">
        {all.length > MOST_UNFILTERED && (
          <Field label={agentWords.filterAgents}>
            <input type="search" value={wanted} maxLength={200} onChange={(event) => setWanted(event.target.value)} />
          </Field>
        )}
        {problem && (
          <p className="hint" role="alert">
            {describeProblem(words, problem)}{" "}
            <button type="button" className="link" onClick={read}>
              {words.retry}
            </button>
          </p>
        )}
        {!all.length && !problem && <p className="hint">{words.loading}</p>}
        <p className="unseen" role="status">
          {wanted && agentWords.agentsShown(shown.length)}
        </p>
        {wanted && !shown.length && <p className="hint">{words.noMatch}</p>}
        <ul ref={cards} className="agent-cards">
          {shown.map((it) => (
            <AgentCard key={it.id} agent={it} me={me} />
          ))}
        </ul>
      </div>
    </div>
  );
}

function matches({ name, description, ownerId }: AgentView, wanted: string): boolean {
  const text = `${name} ${description} ${ownerId ?? ""}`.toLowerCase();
  return wanted.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
