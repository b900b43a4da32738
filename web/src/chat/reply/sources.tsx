import { contentOf, hitsOf, type CitationView, type Part } from "@threadkeep/client";
import { useMemo, useState } from "react";

import { citedIn } from "../../markdown/citations";
import { useWords } from "../../words";

interface Props {
  citations: readonly CitationView[];
  /** The reply, whose marks say what is cited. */
  parts: readonly Part[];
  /** Opens a source at the passage. */
  onOpen: (index: number) => void;
}

/** The passages that a reply cites; the others that were found are one click away. */
export function Sources({ citations, parts, onOpen }: Props) {
  const words = useWords();
  const [isOpen, setOpen] = useState(false);
  const cited = useMemo(() => citedAmong(citations, parts), [citations, parts]);
  const others = citations.filter((it) => !cited.includes(it));
  const chips = (shown: readonly CitationView[]) =>
    shown.map((it) => (
      <li key={it.index}>
        <button type="button" className="chip" data-source={it.index} onClick={() => onOpen(it.index)}>
          <span className="number">{it.index}</span>
          <span className="name">{it.title}</span>
          {it.page != null && <small>{words.page(it.page)}</small>}
        </button>
      </li>
    ));
  const count = others.length;
  return (
    <div className="sources" role="group" aria-label={words.sources}>
      <ul>
        {chips(cited)}
        {count > 0 && (
          <li>
            <button type="button" className="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
              {count < citations.length ? words.moreFound(count) : words.passagesFound(count)}
            </button>
          </li>
        )}
        {isOpen && chips(others)}
      </ul>
    </div>
  );
}

/** Those that the reply's marks name. A passage that was found twice is named by either number. */
function citedAmong(citations: readonly CitationView[], parts: readonly Part[]): CitationView[] {
  const hits = hitsOf(parts);
  const passageOf = (number: number) => hits[number - 1]?.chunkId ?? number;
  const passages = new Set([...citedIn(contentOf(parts))].map(passageOf));
  return citations.filter((it) => passages.has(passageOf(it.index)));
}
