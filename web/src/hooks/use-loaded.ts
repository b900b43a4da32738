import { problemOf, Unreachable, type Problem } from "@threadkeep/client";
import { useCallback, useEffect, useState } from "react";

export type Loaded<T> =
  | { state: "loading" }
  | { state: "failed"; problem: Problem }
  | { state: "ready"; value: T };

/** An error on a page that sends no message: no text can be lost. */
export function pageProblemOf(error: unknown): Problem {
  return error instanceof Unreachable ? { code: "SERVER_UNREACHABLE", message: error.message } : problemOf(error);
}

/** What is read once, and again when asked for; `load` must be stable. */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>) {
  const [loaded, setLoaded] = useState<Loaded<T>>({ state: "loading" });
  const read = useCallback(
    async (signal: AbortSignal) => {
      try {
        const value = await load(signal);
        if (!signal.aborted) setLoaded({ state: "ready", value });
      } catch (error) {
        if (!signal.aborted) setLoaded({ state: "failed", problem: pageProblemOf(error) });
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
