import { requestProblemOf, type Problem } from "@threadkeep/client";
import { useCallback, useEffect, useState } from "react";

import { returns } from "./reachability";

export type Loaded<T> =
  | { state: "loading" }
  | { state: "failed"; problem: Problem }
  | { state: "ready"; value: T };

/** Loads something once, and again on request or when the server is back; `load` must be stable. */
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
  const hasFailed = loaded.state === "failed";
  // When the server is back, so is what could not be loaded.
  useEffect(() => (hasFailed ? returns.subscribe(() => void again()) : undefined), [hasFailed, again]);
  return { loaded, again, set: (value: T) => setLoaded({ state: "ready", value }) };
}
