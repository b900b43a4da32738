import { GitBranch } from "lucide-react";
import { useEffect, useState } from "react";

import { get } from "../api/client";
import { type PageView_SearchHitView, type SearchHitView } from "../api/schema";
import { hrefOf } from "../state/route";
import { useWords } from "../words";

const WAIT_MS = 250;
const MOST = 30;

interface Props {
  query: string;
  /** Conversations whose titles are shown already. */
  shown: readonly { id: string }[];
}

/** Messages in which something was said, newest first, and titles that the list has not read. */
export function SearchResults({ query, shown }: Props) {
  const words = useWords();
  const [found, setFound] = useState<{ query: string; hits: readonly SearchHitView[] } | null>(null);
  useEffect(() => {
    const leaving = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const page = await get<PageView_SearchHitView>("/api/search", { q: query, limit: MOST }, leaving.signal);
        setFound({ query, hits: page.items });
      } catch {
        if (!leaving.signal.aborted) setFound({ query, hits: [] }); // titles are still filtered
      }
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [query]);
  const hits = (found?.hits ?? []).filter((it) => it.messageId !== null || !shown.some(({ id }) => id === it.conversationId));
  if (!hits.length) return !shown.length && <p className="hint">{found?.query === query ? words.noMatch : words.loading}</p>;
  return (
    <section aria-label={words.foundInMessages}>
      <h2>{words.foundInMessages}</h2>
      <ul>
        {hits.map((it) => (
          <li key={it.messageId ?? it.conversationId}>
            <a href={hrefTo(it)}>
              <span className="title" dir="auto">
                {it.title || words.untitled}
              </span>
              {it.messageId !== null && <small dir="auto">{marked(it)}</small>}
              {!it.onPath && (
                <small className="branch">
                  <GitBranch aria-hidden /> {words.otherBranch}
                </small>
              )}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Where a hit is; on another branch one is asked there whether to show it. */
function hrefTo({ conversationId, messageId, seq, onPath }: SearchHitView): string {
  const branchId = onPath ? undefined : (messageId ?? undefined);
  return hrefOf({ name: "conversation", id: conversationId, seq: seq ?? undefined, branchId });
}

/** The snippet with the words that were looked for; places are counted in characters. */
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
