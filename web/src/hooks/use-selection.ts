import { type ConversationView } from "@threadkeep/client";
import { useRef, useState } from "react";

export interface Selection {
  /** Those that are selected and still listed. */
  chosen: readonly ConversationView[];
  has: (id: string) => boolean;
  /** Selects one or takes it out; with `isRange`, all from the one before it. */
  toggle: (id: string, isRange: boolean) => void;
  set: (ids: Iterable<string>) => void;
}

/** What the user has selected in a list. */
export function useSelection(items: readonly ConversationView[]): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const last = useRef<string>(null);
  const toggle = (id: string, isRange: boolean) => {
    const from = items.findIndex((it) => it.id === (isRange ? last.current : id));
    const to = items.findIndex((it) => it.id === id);
    const range = items.slice(Math.min(from < 0 ? to : from, to), Math.max(from, to) + 1);
    const next = new Set(ids);
    for (const it of range) if (ids.has(id)) next.delete(it.id);
      else next.add(it.id);
    last.current = id;
    setIds(next);
  };
  return {
    chosen: items.filter((it) => ids.has(it.id)),
    has: (id) => ids.has(id),
    toggle,
    set: (next) => setIds(new Set(next)),
  };
}
