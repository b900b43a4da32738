import { useState, type ReactNode } from "react";

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

/** The end of a form: its button, and whether something waits to be saved. The button that was pressed keeps the focus. */
export function SaveRow({ label, isChanged, isSaving, isReady = true, children }: Props) {
  const words = useWords();
  const agentWords = useAgentWords();
  const [isFocused, setFocused] = useState(false);
  const isOff = !isChanged || !isReady || isSaving;
  return (
    <div className="choices save">
      <button
        type="submit"
        className="primary"
        disabled={isOff && !isFocused}
        aria-disabled={isOff}
        onFocus={() => setFocused(true)}
        onBlur={() => setFocused(false)}
        onClick={(event) => isOff && event.preventDefault()}
      >
        {label}
      </button>
      <p className="hint" role="status">
        {isSaving ? agentWords.saving : isChanged ? words.unsavedChanges : ""}
      </p>
      {children}
    </div>
  );
}
