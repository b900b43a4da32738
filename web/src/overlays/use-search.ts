import { requestProblemOf, type PageView_SearchHitView, type Problem, type SearchHitView } from "@threadkeep/client";
import { useEffect, useRef, useState } from "react";

import { api } from "../api/api";
import { searchParams, type SearchFilters } from "../state/search";
import { describeProblem } from "../ui/problem-bar";
import { type Words } from "../words";

const WAIT_MS = 150;
const MOST = 30;

interface Results {
  /** What was looked for; null before the first results. */
  isFor: string | null;
  hits: readonly SearchHitView[];
  /** Where the server goes on. */
  nextCursor: string | null;
  problem: Problem | null;
}

const NONE: Results = { isFor: null, hits: [], nextCursor: null, problem: null };

/** The server’s hits. They stay until the next ones are there, so that the list doesn’t flicker while the user types. */
export function useSearch(query: string, filters: SearchFilters) {
  const [results, setResults] = useState(NONE);
  const asked = JSON.stringify({ q: query, limit: MOST, ...searchParams(filters) });
  useEffect(() => {
    if (!query) return setResults(NONE);
    const leaving = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const { items: hits, nextCursor } = await read(asked, null, leaving.signal);
        setResults({ isFor: asked, hits, nextCursor, problem: null });
      } catch (error) {
        if (!leaving.signal.aborted) setResults({ ...NONE, isFor: asked, problem: requestProblemOf(error) });
      }
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [query, asked]);
  const isReading = useRef(false);
  const readOn = async () => {
    if (isReading.current || results.nextCursor === null) return;
    isReading.current = true;
    try {
      const { items, nextCursor } = await read(asked, results.nextCursor);
      setResults((now) => (now.isFor === asked ? { ...now, hits: [...now.hits, ...items], nextCursor } : now));
    } finally {
      isReading.current = false;
    }
  };
  const isSearching = query !== "" && results.isFor !== asked;
  /** Why there is nothing to show, other than that nothing was found. */
  const describeNothing = (words: Words): string | null => {
    if (isSearching) return words.loading;
    return results.problem && describeProblem(words, results.problem);
  };
  const shown = query ? results : NONE;
  return { hits: shown.hits, hasMore: shown.nextCursor !== null && !isSearching, readOn, isSearching, describeNothing };
}

function read(asked: string, cursor: string | null, signal?: AbortSignal): Promise<PageView_SearchHitView> {
  return api.get("/api/search", { ...(JSON.parse(asked) as Record<string, string | number>), cursor }, signal);
}
