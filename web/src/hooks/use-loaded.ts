import { requestProblemOf, type Problem } from "@threadkeep/client";
import { useCallback, useEffect, useState } from "react";

export type Loaded<T> =
  | { state: "loading" }
  | { state: "failed"; problem: Problem }
  | { state: "ready"; value: T };

/** Loads something once, and again on request; `load` must be stable. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>) {
  const [loaded, setLoaded] = useState<Loaded<T>>({ state: "loading" });
  const read = useCallback(
    async (signal: AbortSignal) => {
      try {
        const value = await load(signal);
        if (!signal.aborted) setLoaded({ state: "ready", value });
      } catch (error) {
        if (!signal.aborted) setLoaded({ state: "failed", problem: requestProblemOf(error) });
      }
    },
    [load],
  );
  useEffect(() => {
    const leaving = new AbortController();
    setLoaded({ state: "loading" });
    void read(leaving.signal);
    return () => leaving.abort();
  }, [read]);
  const again = useCallback(() => read(new AbortController().signal), [read]);
  return { loaded, again, set: (value: T) => setLoaded({ state: "ready", value }) };
}
