import { type SearchHitView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { GitBranch } from "lucide-react";
import { type ReactNode } from "react";

import { useSearch } from "../hooks/use-search";
import { conversations } from "../state/front-end";
import { hrefOf } from "../state/route";
import { grouped } from "../state/search";
import { useWords } from "../words";

/** How much of a snippet comes before its first match. */
const MOST_BEFORE = 24;

/** Conversations whose title or messages have the words, each with its hits. */
export function SearchResults({ query }: { query: string }) {
  const words = useWords();
  const { items } = useStore(conversations.state);
  const { hits: all, describeNothing } = useSearch(query);
  const found = grouped(query, items, all);
  return (
    <>
      <p className={found.length ? "unseen" : "hint"} role="status">
        {found.length ? words.resultCount(found.length) : describeNothing(words)}
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

/** Where a hit is; on another branch the page asks whether to show it. */
function hrefTo({ conversationId, messageId, seq, onPath }: SearchHitView): string {
  const branchId = onPath ? undefined : (messageId ?? undefined);
  return hrefOf({ name: "conversation", id: conversationId, seq: seq ?? undefined, branchId });
}

/** The snippet from shortly before the first match, so that the narrow list shows it; positions are in characters. */
function marked({ snippet, highlights }: SearchHitView) {
  const characters = [...snippet];
  let at = Math.max(0, (highlights[0]?.begin ?? 0) - MOST_BEFORE);
  const pieces: ReactNode[] = [at > 0 ? "…" : ""];
  for (const { begin, end } of highlights) {
    pieces.push(characters.slice(at, begin).join(""));
    pieces.push(<mark key={begin}>{characters.slice(begin, end).join("")}</mark>);
    at = end;
  }
  return [...pieces, characters.slice(at).join("")];
}
