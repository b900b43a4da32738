import { type ModelView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { ChevronDown } from "lucide-react";

import { chooseModel, choices, modelsFor, refreshModelsOf } from "../../state/models";
import { Menu } from "../../ui/menu";
import { type MenuGroup } from "../../ui/menu-list";
import { useWords, type Words } from "../../words";

/** Which model answers in a conversation, where its agent offers several. */
export function ModelPicker({ agentId, draftKey }: { agentId: string | undefined; draftKey: string }) {
  const words = useWords();
  const models = useStore(modelsFor(agentId));
  const chosen = useStore(choices)[draftKey];
  const own = models.find((it) => it.default);
  const shown = models.find((it) => it.id === chosen) ?? own ?? models[0];
  if (!shown) return null;
  const groups = modelGroups(words, models, shown.id, (id) => chooseModel(draftKey, id === own?.id ? null : id));
  return (
    <Menu label={words.chooseModel(shown.name)} className="quiet picker" hasTip={false} groups={groups} onOpen={() => void refreshModelsOf(agentId)}>
      <span>{shown.name}</span>
      <ChevronDown aria-hidden />
    </Menu>
  );
}

/** Models as a menu's items, with what they cost and don't take. */
export function modelGroups(words: Words, models: readonly ModelView[], checked: string | null, run: (id: string) => void): MenuGroup[] {
  const isAmbiguous = (it: ModelView) => models.some((other) => other !== it && other.name === it.name);
  const items = models.map((it) => ({
    label: isAmbiguous(it) ? it.id : it.name,
    detail: describeModel(words, it),
    checked: it.id === checked,
    run: () => run(it.id),
  }));
  return [{ items }];
}

function describeModel(words: Words, { price, takesImages, supportsTools, default: isOwn }: ModelView): string {
  const parts = [
    isOwn && words.agentsModel,
    price && words.pricePerMillion(price.input, price.output),
    !takesImages && words.takesNoImages,
    !supportsTools && words.takesNoTools,
  ];
  return parts.filter(Boolean).join(" · ");
}
