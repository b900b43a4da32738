import { type AgentView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";

import { AgentFace } from "../ui/agent-face";
import { type MenuItem } from "../ui/menu-list";
import { useWords } from "../words";
import { agents, inOrder, isGuide, publisherOf } from "./agents";
import { session } from "./session";

/** The agents as items of a menu: icon, name and one line. */
export function useAgentItems(chosenId: string | null, onChoose: (agent: AgentView) => void): MenuItem[] {
  const words = useWords();
  const all = useStore(agents);
  const who = useStore(session);
  return inOrder(all).map((it) => {
    const publisher = publisherOf(it, who);
    return {
      label: publisher === null ? it.name : words.nameByOwner(it.name, publisher),
      detail: isGuide(it) ? words.guideDescription : it.description,
      face: <AgentFace agent={it} />,
      checked: it.id === chosenId,
      run: () => onChoose(it),
    };
  });
}
