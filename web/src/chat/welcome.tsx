import { type AgentView } from "@threadkeep/client";

import { useStore } from "../hooks/use-store";
import { agents, isGuide } from "../state/agents";
import { go } from "../state/route";
import { useWords } from "../words";
import { AgentPicker } from "./agent-picker";
import { Ideas } from "./ideas";

/** Whether the small embedded model replies; the server says so in the page. */
export const isDemonstration = document.documentElement.dataset["demonstration"] === "True";

interface Props {
  agent: AgentView | undefined;
  onIdea: (idea: string) => void;
}

export function Welcome({ agent, onIdea }: Props) {
  const words = useWords();
  const isTour = isGuide(agent);
  const guide = useStore(agents).find(isGuide);
  const isDemo = isDemonstration && !isTour;
  const ideas = isTour ? words.guideIdeas : isDemo ? words.ideas : [];
  return (
    <div className="welcome">
      <AgentPicker agent={agent} />
      <h1>{agent && !agent.isDefault ? words.helloNamed(agent.name) : words.hello}</h1>
      {agent && !agent.isDefault && agent.description && (
        <p className="about">{isTour ? words.guideDescription : agent.description}</p>
      )}
      {isDemo && <p className="demonstration">{words.demonstration}</p>}
      {ideas.length > 0 && (
        <Ideas ideas={ideas} onIdea={onIdea}>
          {isDemo && guide && (
            <button type="button" className="primary" onClick={() => go({ name: "new", agentId: guide.id })}>
              {words.takeTour}
            </button>
          )}
        </Ideas>
      )}
    </div>
  );
}
