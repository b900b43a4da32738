import { GitBranch } from "lucide-react";
import { useEffect, useState } from "react";

import { get } from "../api/client";
import { type PageView_SearchHitView, type SearchHitView } from "../api/schema";
import { conversations } from "../state/conversations";
import { hrefOf } from "../state/route";
import { grouped } from "../state/search";
import { useStore } from "../state/store";
import { useWords } from "../words";

const WAIT_MS = 250;
const MOST = 30;

/** Conversations whose title or messages have the words, each with its hits. */
export function SearchResults({ query }: { query: string }) {
  const words = useWords();
  const { items } = useStore(conversations);
  const answer = useHits(query);
  const found = grouped(query, items, answer.hits);
  const status = found.length ? words.resultCount(found.length) : answer.isFor === query ? words.noMatch : words.loading;
  return (
    <>
      <p className={found.length ? "unseen" : "hint"} role="status">
        {status}
      </p>
      <ul aria-label={words.searchResults}>
        {found.map(({ conversationId, title, hits }) => (
          <li key={conversationId} className="found">
            <a href={hrefOf({ name: "conversation", id: conversationId })}>
              <span className="title" dir="auto">
                {title || words.untitled}
              </span>
            </a>
            {hits.length > 0 && (
              <ul>
                {hits.map((hit) => (
                  <li key={hit.messageId}>
                    <a href={hrefTo(hit)}>
                      <span className="snippet" dir="auto">
                        {marked(hit)}
                      </span>
                      {!hit.onPath && (
                        <small className="branch">
                          <GitBranch aria-hidden /> {words.otherBranch}
                        </small>
                      )}
                    </a>
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

/** The server's hits; the previous query's stay until the new ones arrive. */
function useHits(query: string) {
  const [answer, setAnswer] = useState<{ isFor: string; hits: readonly SearchHitView[] }>({ isFor: "", hits: [] });
  useEffect(() => {
    const leaving = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const page = await get<PageView_SearchHitView>("/api/search", { q: query, limit: MOST }, leaving.signal);
        setAnswer({ isFor: query, hits: page.items });
      } catch {
        if (!leaving.signal.aborted) setAnswer({ isFor: query, hits: [] }); // known titles are still filtered
      }
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [query]);
  return answer;
}

/** Where a hit is; on another branch the page asks whether to show it. */
function hrefTo({ conversationId, messageId, seq, onPath }: SearchHitView): string {
  const branchId = onPath ? undefined : (messageId ?? undefined);
  return hrefOf({ name: "conversation", id: conversationId, seq: seq ?? undefined, branchId });
}

/** The snippet with the matches; positions are in characters. */
function marked({ snippet, highlights }: SearchHitView) {
  const characters = [...snippet];
  const pieces = [];
  let at = 0;
  for (const { begin, end } of highlights) {
    pieces.push(characters.slice(at, begin).join(""));
    pieces.push(<mark key={begin}>{characters.slice(begin, end).join("")}</mark>);
    at = end;
  }
  return [...pieces, characters.slice(at).join("")];
}
