import { requestProblemOf, type PageView_SearchHitView, type Problem, type SearchHitView } from "@threadkeep/client";
import { useEffect, useState } from "react";

import { api } from "../api/api";
import { describeProblem } from "../ui/problem-bar";
import { type Words } from "../words";

const WAIT_MS = 250;
const MOST = 30;

interface Results {
  isFor: string;
  hits: readonly SearchHitView[];
  problem: Problem | null;
}

const NONE: Results = { isFor: "", hits: [], problem: null };

/** The server’s hits; they stay while the user adds letters, but not when the words change. */
export function useSearch(query: string) {
  const [results, setResults] = useState(NONE);
  useEffect(() => {
    if (!query) return setResults(NONE);
    const leaving = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const { items } = await api.get<PageView_SearchHitView>("/api/search", { q: query, limit: MOST }, leaving.signal);
        setResults({ isFor: query, hits: items, problem: null });
      } catch (error) {
        if (!leaving.signal.aborted) setResults({ isFor: query, hits: [], problem: requestProblemOf(error) });
      }
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [query]);
  const { hits } = query.startsWith(results.isFor) ? results : NONE;
  /** Why there is nothing to show. */
  const describeNothing = (words: Words) => {
    if (results.isFor !== query) return words.loading;
    return results.problem ? describeProblem(words, results.problem) : words.noMatch;
  };
  return { hits, describeNothing };
}
