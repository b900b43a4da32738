import { type AgentColor, type AgentView } from "@threadkeep/client";
import { type CSSProperties } from "react";

import { useChunk } from "./use-chunk";

const HUES: Record<Exclude<AgentColor, "auto">, number> = {
  red: 4,
  orange: 26,
  yellow: 46,
  green: 130,
  teal: 172,
  blue: 212,
  violet: 266,
  pink: 330,
};

export type Face = Pick<AgentView, "id" | "name" | "isDefault" | "icon" | "color">;

const loadPictures = () => import("./agent-pictures");
/** The tile alone has the agent's colour. */
const doWithout = () => true;

/** An agent's icon in its colour: a picture, or its first letter. The default agent wears the page's colour unless it has one. */
export function AgentFace({ agent: { id, name, isDefault, icon = "letter", color = "auto" } }: { agent: Face }) {
  const pictures = useChunk(loadPictures, icon !== "letter", doWithout);
  const Picture = icon === "letter" ? undefined : pictures?.PICTURES[icon];
  const isPlain = isDefault && color === "auto";
  const style = isPlain ? undefined : ({ "--hue": color === "auto" ? hueOf(id) : HUES[color] } as CSSProperties);
  return (
    <span
      className="agent-face"
      aria-hidden
      data-letter={icon === "letter" ? [...name][0]?.toUpperCase() : undefined}
      data-own={isPlain || undefined}
      style={style}
    >
      {Picture && <Picture />}
    </span>
  );
}

/** Far from that of an agent made in the same moment. */
function hueOf(id: string): number {
  let sum = 0;
  for (const character of id) sum = (sum * 31 + character.charCodeAt(0)) % 360_007;
  return sum % 360;
}
