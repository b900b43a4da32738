import { type AgentColor, type AgentIcon } from "@threadkeep/client";
import { useId } from "react";

import { AgentFace, type Face } from "../ui/agent-face";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";

interface Props {
  agent: Face & { icon: AgentIcon; color: AgentColor };
  /** Whether the agent's code declares the icon. */
  isIconDeclared: boolean;
  onIcon: (icon: AgentIcon) => void;
  onColor: (color: AgentColor) => void;
}

/** An agent's icon and its colour, each shown as it will look. */
export function IconChoice({ agent, isIconDeclared, onIcon, onColor }: Props) {
  const agentWords = useAgentWords();
  const words = useWords();
  const face = { ...agent, name: agent.name.trim() || words.agent };
  return (
    <div className="icon-choices">
      <Tiles
        legend={agentWords.icon}
        hint={isIconDeclared ? agentWords.declaredInCode : undefined}
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
  /** Why there is nothing to choose. */
  hint?: string;
  names: Record<T, string>;
  chosen: T;
  faceOf: (choice: T) => Face;
  onChoose: (choice: T) => void;
}

function Tiles<T extends string>({ legend, hint, names, chosen, faceOf, onChoose }: TilesProps<T>) {
  const group = useId();
  return (
    <fieldset className="icon-choice" disabled={hint !== undefined}>
      <legend>
        {legend}
        {hint && <small> {hint}</small>}
      </legend>
      {(Object.keys(names) as T[]).map((it) => (
        <label key={it} data-tip={names[it]}>
          <input type="radio" name={group} aria-label={names[it]} checked={it === chosen} onChange={() => onChoose(it)} />
          <AgentFace agent={faceOf(it)} />
        </label>
      ))}
    </fieldset>
  );
}
