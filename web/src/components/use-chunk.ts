import { useEffect, useState } from "react";

import { toast } from "../state/toasts";
import { useWords } from "../words";

/**
 * A part of the page that is loaded when it is first wanted; null until it is there.
 *
 * After an update of the server the files of an open page are gone: the user can reload it. `onFailed` returns whether
 * it says so itself.
 */
export function useChunk<T>(load: () => Promise<T>, wanted: boolean, onFailed: () => boolean | void = () => {}): T | null {
  const words = useWords();
  const [chunk, setChunk] = useState<{ module: T } | null>(null);
  useEffect(() => {
    if (!wanted || chunk) return;
    load()
      .then((module) => setChunk({ module }))
      .catch(() => {
        if (!onFailed()) toast(words.partFailed, { label: words.reload, run: () => location.reload() });
      });
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- tried again when it is wanted again, not whenever something is drawn
  }, [wanted]);
  return chunk?.module ?? null;
}
