import { ChevronRight } from "lucide-react";
import { type ReactNode } from "react";

import { useWords } from "../words";

/** What a model call had said before it was made again: folded, and no part of the answer. */
export function Superseded({ children }: { children: ReactNode }) {
  const words = useWords();
  return (
    <details className="steps superseded" role="group" aria-label={words.superseded}>
      <summary>
        <ChevronRight aria-hidden className="fold" />
        <span>{words.superseded}</span>
      </summary>
      <div className="old">{children}</div>
    </details>
  );
}
