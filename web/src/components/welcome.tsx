import { type AgentView } from "../api/schema";
import { useWords } from "../words";
import { AgentPicker } from "./agent-picker";

/** Whether the small embedded model answers; the server says so in the page. */
export const isDemonstration = document.documentElement.dataset["demonstration"] === "True";

interface Props {
  agent: AgentView | undefined;
  onIdea: (idea: string) => void;
}

export function Welcome({ agent, onIdea }: Props) {
  const words = useWords();
  return (
    <div className="welcome">
      <AgentPicker agent={agent} />
      <h1>{agent && !agent.isDefault ? words.helloNamed(agent.name) : words.hello}</h1>
      {agent && !agent.isDefault && agent.description && <p className="about">{agent.description}</p>}
      {isDemonstration && <p className="demonstration">{words.demonstration}</p>}
      {isDemonstration && (
        <div className="ideas">
          {words.ideas.map((idea) => (
            <button key={idea} type="button" onClick={() => onIdea(idea)}>
              {idea}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
