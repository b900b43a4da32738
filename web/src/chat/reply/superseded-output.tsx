import { ChevronRight, History } from "lucide-react";
import { type ReactNode } from "react";

import { useWords } from "../../words";

/** Why a model call was made again; a stored reply no longer knows. */
type Reason = "server" | "model" | "unknown";

export function reasonOf({ from, to }: { from: number; to: number }, resumedAt: readonly number[] | undefined): Reason {
  if (!resumedAt) return "unknown";
  return resumedAt.some((at) => from < at && at <= to + 1) ? "server" : "model";
}

/** The output of a model call before its restart: collapsed, and not part of the reply. */
export function SupersededOutput({ reason, children }: { reason: Reason; children: ReactNode }) {
  const words = useWords();
  const label = { server: words.continued, model: words.modelLost, unknown: words.superseded }[reason];
  return (
    <details className="activity superseded" role="group" aria-label={label}>
      <summary>
        <History aria-hidden />
        <span className="summary-text">{label}</span>
        <ChevronRight aria-hidden className="fold" />
      </summary>
      <div className="old">{children}</div>
    </details>
  );
}
