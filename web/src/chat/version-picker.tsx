import { type SiblingsView } from "@threadkeep/client";
import { ChevronLeft, ChevronRight } from "lucide-react";
import { type KeyboardEvent } from "react";

import { IconButton } from "../ui/icon-button";
import { useWords } from "../words";

interface Props {
  siblings: SiblingsView;
  /** Whether a turn runs here: the path stays until it ends. */
  busy: boolean;
  onChoose: (messageId: string) => void;
}

/** Switches between the versions of a message, by its buttons or by the arrow keys on them. */
export function VersionPicker({ siblings: { ids, index }, busy, onChoose }: Props) {
  const words = useWords();
  const go = (step: -1 | 1) => {
    const id = ids[index + step];
    if (id !== undefined && !busy) onChoose(id);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    event.preventDefault();
    go(event.key === "ArrowLeft" ? -1 : 1);
  };
  const isFirst = index === 0;
  const isLast = index === ids.length - 1;
  return (
    <span className="versions" role="group" aria-label={words.version(index + 1, ids.length)} onKeyDown={onKeyDown}>
      <IconButton
        icon={ChevronLeft}
        label={words.previousVersion}
        unavailable={busy ? words.switchBusy : isFirst ? words.firstVersion : undefined}
        onClick={() => go(-1)}
      />
      <span>{words.versionShort(index + 1, ids.length)}</span>
      <IconButton
        icon={ChevronRight}
        label={words.nextVersion}
        unavailable={busy ? words.switchBusy : isLast ? words.lastVersion : undefined}
        onClick={() => go(1)}
      />
    </span>
  );
}
