/** Selecting several conversations in the sidebar; loaded when the first is selected. */

import "../styles/selecting.css";

import { type ConversationView } from "@threadkeep/client";
import { useLayoutEffect, useRef } from "react";

import { useEscape } from "../hooks/use-escape";
import { type Selection } from "../hooks/use-selection";
import { conversations } from "../state/front-end";
import { go, route } from "../state/route";
import { BulkBar } from "../ui/bulk-bar";
import { useWords } from "../words";
import { useBulkWords } from "../words/bulk";
import { useActiveBulk } from "./use-active-bulk";

interface BarProps {
  items: readonly ConversationView[];
  selection: Selection;
  onEnd: () => void;
}

/** Says how many are selected, and what can be done with them. Escape ends it, wherever the focus is. */
export function SelectionBar({ items, selection, onEnd }: BarProps) {
  useEscape(true, onEnd);
  const actions = useActiveBulk(conversations.refresh).map((action) => ({
    ...action,
    run: async (chosen: readonly ConversationView[]) => {
      await action.run(chosen);
      const at = route.get();
      if (at.name === "conversation" && chosen.some(({ id }) => id === at.id)) go({ name: "new", agentId: null });
    },
  }));
  return <BulkBar items={items} selection={selection} actions={actions} onEnd={onEnd} />;
}

interface ItemProps {
  conversation: ConversationView;
  isSelected: boolean;
  /** Whether the row had the focus when it became selectable. */
  hasFocus: boolean;
  onSelect: (id: string, isRange: boolean) => void;
}

/** A conversation in its row, to be selected. */
export function SelectableItem({ conversation: { id, title }, isSelected, hasFocus, onSelect }: ItemProps) {
  const words = useWords();
  const bulkWords = useBulkWords();
  const box = useRef<HTMLInputElement>(null);
  const isShifted = useRef(false);
  useLayoutEffect(() => {
    if (hasFocus && document.activeElement === document.body) box.current!.focus();
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once: it takes the focus of the link or the menu that was here
  }, []);
  const name = title || words.untitled;
  return (
    // A click on the title reaches the box without its keys.
    <label
      data-selected={isSelected || undefined}
      onPointerDown={({ shiftKey }) => void (isShifted.current = shiftKey)}
      onKeyDown={({ shiftKey }) => void (isShifted.current = shiftKey)}
    >
      <input
        ref={box}
        type="checkbox"
        aria-label={bulkWords.select(name)}
        checked={isSelected}
        onChange={() => onSelect(id, isShifted.current)}
      />
      <span className="title" dir="auto">
        {name}
      </span>
    </label>
  );
}
