import { type AgentView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";

import { agents, isGuide } from "../state/agents";
import { modelState } from "../state/models";
import { go } from "../state/route";
import { session } from "../state/session";
import { useWords } from "../words";
import { AgentPicker } from "./agent-picker";
import { Ideas } from "./ideas";

interface Props {
  agent: AgentView | undefined;
  onIdea: (idea: string) => void;
}

export function Welcome({ agent, onIdea }: Props) {
  const words = useWords();
  const isTour = isGuide(agent);
  const guide = useStore(agents).find(isGuide);
  const state = useStore(modelState);
  const isDemo = state === "demonstration" && !isTour;
  const lacksModel = state !== "connected" && !isTour;
  const who = useStore(session);
  const isAdmin = who.state === "in" && who.me.role === "admin";
  const ideas = isTour ? words.guideIdeas : isDemo ? words.ideas : [];
  return (
    <div className="welcome">
      <AgentPicker agent={agent} />
      <h1>{agent && !agent.isDefault ? words.helloNamed(agent.name) : words.hello}</h1>
      {agent && !agent.isDefault && agent.description && (
        <p className="about">{isTour ? words.guideDescription : agent.description}</p>
      )}
      {lacksModel && (
        <div className="connect">
          <p className="demonstration">
            {!isDemo ? (isAdmin ? words.noModel : words.notConfigured) : isAdmin ? words.demonstration : words.demonstrationForUsers}
          </p>
          {isAdmin && (
            <button type="button" className="primary" onClick={() => go({ name: "gateways" })}>
              {words.connectModel}
            </button>
          )}
        </div>
      )}
      {ideas.length > 0 && (
        <Ideas ideas={ideas} onIdea={onIdea}>
          {isDemo && guide && (
            <button type="button" className={isAdmin ? "" : "primary"} onClick={() => go({ name: "new", agentId: guide.id })}>
              {words.takeTour}
            </button>
          )}
        </Ideas>
      )}
    </div>
  );
}
