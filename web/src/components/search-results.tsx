import { useEffect, useState } from "react";

import { get } from "../api/client";
import { hrefOf } from "../state/route";
import { useWords } from "../words";

const WAIT_MS = 250;
const MOST = 30;

interface Hit {
  conversationId: string;
  title: string | null;
  messageId: string | null;
  snippet: string;
  highlights: { begin: number; end: number }[];
}

/** Messages in which something was said, newest first. */
export function SearchResults({ query }: { query: string }) {
  const words = useWords();
  const [hits, setHits] = useState<readonly Hit[]>([]);
  useEffect(() => {
    const leaving = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const page = await get<{ items: Hit[] }>("/api/search", { q: query, limit: MOST }, leaving.signal);
        setHits(page.items.filter((it) => it.messageId !== null));
      } catch {
        setHits([]); // titles are still filtered
      }
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      leaving.abort();
    };
  }, [query]);
  if (!hits.length) return null;
  return (
    <section aria-label={words.foundInMessages}>
      <h2>{words.foundInMessages}</h2>
      <ul>
        {hits.map((it) => (
          <li key={it.messageId}>
            <a href={hrefOf({ name: "conversation", id: it.conversationId })}>
              <span className="title" dir="auto">
                {it.title || words.untitled}
              </span>
              <small dir="auto">{marked(it)}</small>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The snippet with the words that were looked for; places are counted in characters. */
function marked({ snippet, highlights }: Hit) {
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
