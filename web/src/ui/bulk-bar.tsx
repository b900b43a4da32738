import "../styles/bulk-bar.css";

import { type ConversationView } from "@threadkeep/client";
import { X } from "lucide-react";
import { useEffect, useRef, useState, type ReactNode } from "react";

import { type Selection } from "../hooks/use-selection";
import { useBulkWords } from "../words/bulk";
import { IconButton } from "./icon-button";

export interface BulkAction {
  label: string;
  icon: ReactNode;
  isDangerous?: boolean;
  run: (chosen: readonly ConversationView[]) => Promise<void>;
}

interface Props {
  items: readonly ConversationView[];
  selection: Selection;
  actions: readonly BulkAction[];
  /** Ends selecting, where it isn't what the whole page is for. */
  onEnd?: () => void;
}

/** Selects all that are listed, and does something with what is selected. */
export function BulkBar({ items, selection, actions, onEnd }: Props) {
  const bulkWords = useBulkWords();
  const all = useRef<HTMLInputElement>(null);
  const [isBusy, setBusy] = useState(false);
  const { chosen } = selection;
  const isAll = chosen.length === items.length && items.length > 0;
  useEffect(() => {
    if (all.current) all.current.indeterminate = chosen.length > 0 && !isAll;
  }, [chosen.length, isAll]);
  const run = async (action: BulkAction) => {
    setBusy(true);
    await action.run(chosen);
    setBusy(false);
    selection.set([]);
    all.current?.focus(); // the buttons are gone
    onEnd?.();
  };
  return (
    <div className="bulk-bar" role="group" aria-label={bulkWords.selection}>
      <input
        ref={all}
        id="select-all"
        type="checkbox"
        checked={isAll}
        onChange={() => selection.set(isAll ? [] : items.map((it) => it.id))}
      />
      <label htmlFor="select-all">{bulkWords.selectAll}</label>
      <span className="how-many" role="status">
        {chosen.length > 0 && bulkWords.selected(chosen.length)}
      </span>
      {chosen.length > 0 &&
        actions.map((action) => (
          <button
            key={action.label}
            type="button"
            className={action.isDangerous ? "danger" : undefined}
            disabled={isBusy}
            onClick={() => void run(action)}
          >
            {action.icon}
            {action.label}
          </button>
        ))}
      {onEnd && <IconButton icon={X} label={bulkWords.end} onClick={onEnd} />}
    </div>
  );
}
