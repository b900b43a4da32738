import { useEffect, useState } from "react";

import { useWords } from "../words";
import { toast } from "./toasts";

type Load<T> = () => Promise<T>;

/** A chunk that was loaded before is available immediately. */
const loaded = new WeakMap<Load<unknown>, unknown>();

export async function loadChunk<T>(load: Load<T>): Promise<T> {
  const module = await load();
  loaded.set(load, module);
  return module;
}

/**
 * A part of the page that loads when it is first wanted; null until it has.
 *
 * After an update of the server, the files of an open page are gone: a toast offers to reload it, unless `onFailed`
 * returns true because it says so itself.
 */
export function useChunk<T>(load: Load<T>, wanted: boolean, onFailed: () => boolean | void = () => {}): T | null {
  const words = useWords();
  const [chunk, setChunk] = useState<T | null>(() => (loaded.get(load) as T | undefined) ?? null);
  useEffect(() => {
    if (!wanted || chunk) return;
    loadChunk(load)
      .then((module) => setChunk(() => module))
      .catch(() => {
        if (!onFailed()) toast(words.partFailed, { label: words.reload, run: () => location.reload() });
      });
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- tried again when it is wanted again, not whenever something is drawn
  }, [wanted]);
  return chunk;
}
