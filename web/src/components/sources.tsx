import { type CitationView } from "../api/schema";
import { useWords } from "../words";

/** Where the answer has it from; a mark `[1]` in it leads here. */
export function Sources({ citations, place }: { citations: readonly CitationView[]; place: string }) {
  const words = useWords();
  return (
    <div className="sources" role="group" aria-label={words.sources}>
      <p className="label">{words.sources}</p>
      <ol>
        {citations.map((it) => (
          <li key={it.index} id={`${place}-source-${it.index}`} tabIndex={-1} className="source">
            <p className="from">
              <span className="number">{it.index}</span>
              <span className="name">
                {it.url && /^https?:/.test(it.url) ? (
                  <a href={it.url} target="_blank" rel="noopener noreferrer nofollow">
                    {it.title}
                  </a>
                ) : (
                  it.title
                )}
              </span>
              {it.page != null && <small>{words.page(it.page)}</small>}
              <small>{words.score(Math.round(it.score * 100))}</small>
            </p>
            <p className="snippet" dir="auto">
              {it.snippet}
            </p>
          </li>
        ))}
      </ol>
    </div>
  );
}
