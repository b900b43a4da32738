import { type AgentView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { type ReactNode } from "react";

import { isGuide, needsNoModel } from "../../state/agents";
import { modelState } from "../../state/models";
import { go } from "../../state/route";
import { session } from "../../state/session";
import { useChunk } from "../../ui/use-chunk";
import { useWords } from "../../words";
import { Ideas } from "../ideas";

const loadSections = () => import("./home-sections");
/** Where its code can't be loaded, the page works without it. */
const doWithout = () => true;

interface Props {
  agent: AgentView | undefined;
  /** Begins a conversation with a message; with another agent, if one is given. */
  onStart: (message: string, agent?: AgentView) => void;
  /** The composer. */
  children: ReactNode;
}

/** The first screen: an agent to ask, ideas for a first message, and recent work. */
export function Welcome({ agent, onStart, children }: Props) {
  const words = useWords();
  const isTour = isGuide(agent);
  const state = useStore(modelState);
  const isDemo = state === "demonstration";
  const lacksModel = state !== "connected" && !needsNoModel(agent);
  const who = useStore(session);
  const isAdmin = who.state === "in" && who.me.role === "admin";
  const sections = useChunk(loadSections, true, doWithout);
  return (
    <div className="welcome scroller">
      <div className="hero">
        <h1>{!agent || agent.isDefault ? words.hello : isTour ? words.guideHello : words.helloNamed(agent.name)}</h1>
        {agent && !agent.isDefault && (isTour || agent.description) && (
          <p className="about" dir="auto">
            {isTour ? words.guideDescription : agent.description}
          </p>
        )}
      </div>
      {children}
      {agent?.engine?.kind === "ag-ui" && agent.engine.host && <p className="goes-elsewhere">{words.goesElsewhere(agent.engine.host)}</p>}
      <Ideas ideas={ideas()} onIdea={(idea) => onStart(idea)} />
      {lacksModel && (
        <p className="demonstration">
          {!isDemo ? (isAdmin ? words.noModel : words.notConfigured) : isAdmin ? words.demonstration : words.demonstrationForUsers}{" "}
          {isAdmin && (
            <button type="button" className="primary" onClick={() => go({ name: "gateways" })}>
              {words.connectModel}
            </button>
          )}
        </p>
      )}
      {sections && <sections.HomeSections agent={agent} onStart={onStart} />}
    </div>
  );

  function ideas(): readonly string[] {
    if (isTour) return words.guideIdeas;
    if (agent?.starters?.length) return agent.starters;
    return isDemo ? words.ideas : agent?.isDefault && state === "connected" ? words.starters : [];
  }
}
