import { type AgentDetailView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";

import { agents, inOrder, isGuide } from "../state/agents";
import { useAgentWords } from "../words/agents";

interface Props {
  agent: AgentDetailView;
  onChoose: (agents: string[]) => void;
}

/** The other agents that this one's model can call. What is chosen and gone since keeps its place, by its id. */
export function AgentOthers({ agent, onChoose }: Props) {
  const agentWords = useAgentWords();
  const chosen = agent.settings?.agents ?? [];
  const all = inOrder(useStore(agents)).filter((it) => it.id !== agent.id && (!isGuide(it) || chosen.includes(it.id)));
  const nameOf = (id: string) => all.find((it) => it.id === id || it.engine?.key === id)?.name;
  const isChosen = (id: string, key: string | undefined) => chosen.some((it) => it === id || it === key);
  const gone = chosen.filter((it) => nameOf(it) === undefined);
  if (!all.length && !gone.length) return null;
  const rows = [
    ...all.map((it) => ({ id: it.id, key: it.engine?.key, name: it.name, description: it.description })),
    ...gone.map((id) => ({ id, key: undefined, name: id, description: agentWords.agentIsGone })),
  ];
  const toggle = ({ id, key }: (typeof rows)[number]) =>
    onChoose(isChosen(id, key) ? chosen.filter((it) => it !== id && it !== key) : [...chosen, id]);
  return (
    <div className="field models" role="group" aria-label={agentWords.otherAgents}>
      <span className="label">{agentWords.otherAgents}</span>
      <p className="hint">{agentWords.otherAgentsHint}</p>
      <ul className="model-choice">
        {rows.map((it) => (
          <li key={it.id}>
            <label className="check">
              <input type="checkbox" checked={isChosen(it.id, it.key)} onChange={() => toggle(it)} />
              <span dir="auto">{it.name}</span>
              {it.description && <small dir="auto">{it.description}</small>}
            </label>
          </li>
        ))}
      </ul>
    </div>
  );
}
