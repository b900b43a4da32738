import { type ReactNode } from "react";

import { useWords } from "../words";
import { useAgentWords } from "../words/agents";

interface Props {
  label: string;
  /** Whether there is something to save. */
  isChanged: boolean;
  isSaving: boolean;
  /** Whether it can be saved as it is. */
  isReady?: boolean;
  children?: ReactNode;
}

/** The end of a form: its button, and whether something waits to be saved. */
export function SaveRow({ label, isChanged, isSaving, isReady = true, children }: Props) {
  const words = useWords();
  const agentWords = useAgentWords();
  return (
    <div className="choices save">
      <button type="submit" className="primary" disabled={!isChanged || !isReady || isSaving}>
        {label}
      </button>
      <p className="hint" role="status">
        {isSaving ? agentWords.saving : isChanged ? words.unsavedChanges : ""}
      </p>
      {children}
    </div>
  );
}
