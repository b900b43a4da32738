import { ChevronLeft, ChevronRight } from "lucide-react";

import { useWords } from "../words";
import { IconButton } from "./icon-button";

interface Props {
  index: number;
  count: number;
  onChoose: (index: number) => void;
}

export function VersionPicker({ index, count, onChoose }: Props) {
  const words = useWords();
  return (
    <span className="versions">
      <IconButton
        icon={ChevronLeft}
        label={words.previousVersion}
        disabled={index === 0}
        onClick={() => onChoose(index - 1)}
      />
      <span role="img" aria-label={words.version(index + 1, count)}>
        {index + 1}/{count}
      </span>
      <IconButton
        icon={ChevronRight}
        label={words.nextVersion}
        disabled={index === count - 1}
        onClick={() => onChoose(index + 1)}
      />
    </span>
  );
}
