import { type AgentColor, type AgentIcon } from "@threadkeep/client";
import { useId } from "react";

import { AgentFace, type Face } from "../ui/agent-face";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";

interface Props {
  agent: Face & { icon: AgentIcon; color: AgentColor };
  onIcon: (icon: AgentIcon) => void;
  onColor: (color: AgentColor) => void;
}

/** An agent's icon and its colour, each shown as it will look. */
export function IconChoice({ agent, onIcon, onColor }: Props) {
  const agentWords = useAgentWords();
  const words = useWords();
  const face = { ...agent, name: agent.name.trim() || words.agent };
  return (
    <div className="icon-choices">
      <Tiles
        legend={agentWords.icon}
        names={agentWords.icons}
        chosen={agent.icon}
        faceOf={(icon) => ({ ...face, icon })}
        onChoose={onIcon}
      />
      <Tiles
        legend={agentWords.color}
        names={agentWords.colors}
        chosen={agent.color}
        faceOf={(color) => ({ ...face, color })}
        onChoose={onColor}
      />
    </div>
  );
}

interface TilesProps<T extends string> {
  legend: string;
  names: Record<T, string>;
  chosen: T;
  faceOf: (choice: T) => Face;
  onChoose: (choice: T) => void;
}

function Tiles<T extends string>({ legend, names, chosen, faceOf, onChoose }: TilesProps<T>) {
  const group = useId();
  return (
    <fieldset className="icon-choice">
      <legend>{legend}</legend>
      {(Object.keys(names) as T[]).map((it) => (
        <label key={it} data-tip={names[it]}>
          <input type="radio" name={group} aria-label={names[it]} checked={it === chosen} onChange={() => onChoose(it)} />
          <AgentFace agent={faceOf(it)} />
        </label>
      ))}
    </fieldset>
  );
}
