import { useStore } from "@threadkeep/react";
import { RefreshCw } from "lucide-react";

import { modelsFor, refreshModelsOf } from "../../state/models";
import { IconButton } from "../../ui/icon-button";
import { Menu } from "../../ui/menu";
import { useWords } from "../../words";
import { modelGroups } from "../composer/model-picker";

interface Props {
  agentId: string | undefined;
  /** The model that replied. */
  model: string | null;
  busy: boolean;
  /** Written on the button instead of an icon. */
  text?: string;
  onRegenerate: (model?: string) => void;
}

/** Asks for another reply; where the agent offers several models, with any of them. */
export function RegenerateButton({ agentId, model, busy, text, onRegenerate }: Props) {
  const words = useWords();
  const models = useStore(modelsFor(agentId));
  if (text && !models.length)
    return (
      <button type="button" aria-disabled={busy} onClick={() => !busy && onRegenerate()}>
        {text}
      </button>
    );
  if (!models.length || busy)
    return (
      <IconButton
        icon={RefreshCw}
        label={words.regenerate}
        unavailable={busy ? words.regenerateBusy : undefined}
        onClick={() => onRegenerate()}
      />
    );
  return (
    <Menu
      label={text ?? words.regenerate}
      className={text ? "" : "icon"}
      hasTip={!text}
      groups={modelGroups(words, models, model, onRegenerate)}
      onOpen={() => void refreshModelsOf(agentId)}
    >
      {text ?? <RefreshCw aria-hidden />}
    </Menu>
  );
}
