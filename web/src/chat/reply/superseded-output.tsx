import { ChevronRight, History } from "lucide-react";
import { type ReactNode } from "react";

import { useWords } from "../../words";

/** The output of a model call before its restart: collapsed, and not part of the reply. */
export function SupersededOutput({ children }: { children: ReactNode }) {
  const words = useWords();
  return (
    <details className="activity superseded" role="group" aria-label={words.superseded}>
      <summary>
        <History aria-hidden />
        <span className="summary-text">{words.superseded}</span>
        <ChevronRight aria-hidden className="fold" />
      </summary>
      <div className="old">{children}</div>
    </details>
  );
}
