import { requestProblemOf, type HitsView } from "@threadkeep/client";
import { useRef, useState } from "react";

import { api } from "../api/api";
import { Field } from "../ui/field";
import { describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useAgentWords } from "../words/agents";

/** Tries what the agent would find. */
export function DocumentSearch({ agentId }: { agentId: string }) {
  const words = useWords();
  const agentWords = useAgentWords();
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<HitsView | null>(null);
  const [failure, setFailure] = useState("");
  const searching = useRef<AbortController>(undefined);
  const search = async () => {
    searching.current?.abort(); // its response would come too late
    const { signal } = (searching.current = new AbortController());
    setFailure("");
    try {
      setFound(await api.get<HitsView>(`/api/agents/${agentId}/search`, { q: query }, signal));
    } catch (error) {
      if (!signal.aborted) setFailure(describeProblem(words, requestProblemOf(error)));
    }
  };
  return (
    <form
      className="form search"
      onSubmit={(event) => {
        event.preventDefault();
        if (query.trim()) void search();
      }}
    >
      <Field label={agentWords.trySearch}>
        <input type="search" value={query} maxLength={2000} onChange={(event) => setQuery(event.target.value)} />
      </Field>
      {failure && <p className="wrong">{failure}</p>}
      {found && (
        <div className="sources" role="group" aria-label={agentWords.found}>
          {found.notice && <p className="hint">{found.notice}</p>}
          {!found.items.length && <p className="hint">{words.noMatch}</p>}
          <ol>
            {found.items.map((it) => (
              <li key={it.chunkId} className="source">
                <p className="from">
                  <span className="name">{it.source}</span>
                  {it.page !== null && <small>{words.page(it.page)}</small>}
                  <small>{words.score(Math.round(it.score * 100))}</small>
                </p>
                <p className="snippet" dir="auto">
                  {it.snippet}
                </p>
              </li>
            ))}
          </ol>
        </div>
      )}
    </form>
  );
}
