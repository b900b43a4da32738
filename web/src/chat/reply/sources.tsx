import { type CitationView } from "@threadkeep/client";

import { Markdown } from "../../markdown/markdown";
import { useWords } from "../../words";

interface Props {
  citations: readonly CitationView[];
  /** Opens a source at the passage. */
  onOpen: (index: number) => void;
}

/** The sources of a reply. */
export function Sources({ citations, onOpen }: Props) {
  const words = useWords();
  return (
    <div className="sources" role="group" aria-label={words.sources}>
      <p className="label">{words.sources}</p>
      <ol>
        {citations.map((it) => (
          <li key={it.index} className="source">
            <p className="from">
              <span className="number">{it.index}</span>
              {it.url && /^https?:/.test(it.url) ? (
                <a className="name" href={it.url} target="_blank" rel="noopener noreferrer nofollow">
                  {it.title}
                </a>
              ) : (
                <button type="button" className="link name" onClick={() => onOpen(it.index)}>
                  {it.title}
                </button>
              )}
              {it.page != null && <small>{words.page(it.page)}</small>}
              <small>{words.score(Math.round(it.score * 100))}</small>
            </p>
            <div className="snippet">
              <Markdown text={it.snippet} isPassage />
            </div>
          </li>
        ))}
      </ol>
    </div>
  );
}
