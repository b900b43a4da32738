import { useLayoutEffect, useRef } from "react";

import { Markdown } from "../markdown/markdown";
import { useWords } from "../words";
import { useSourceWords } from "../words/sources";
import { type ReadText } from "./use-document-text";

/** The document's own text, opened at the passage that is cited. */
export function DocumentText({ text, citedId }: { text: ReadText; citedId: string | null | undefined }) {
  const words = useWords();
  const sourceWords = useSourceWords();
  const cited = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    cited.current?.scrollIntoView({ block: "center" }); // newer browsers return a promise, which an effect must not
  }, []);
  return (
    <section aria-label={sourceWords.document} className="document-text">
      {text.hasEarlier && (
        <button type="button" className="link" onClick={() => void text.readEarlier()}>
          {sourceWords.earlier}
        </button>
      )}
      {text.passages.map(({ chunkId, page, text: passage }) => {
        const isCited = chunkId === citedId;
        return (
          <div key={chunkId} ref={isCited ? cited : undefined} className="passage" data-cited={isCited || undefined}>
            {(isCited || page !== null) && (
              <p className="about">
                {isCited && <strong>{sourceWords.cited}</strong>}
                {page !== null && <span>{words.page(page)}</span>}
              </p>
            )}
            <Markdown text={passage} isPassage />
          </div>
        );
      })}
      {text.hasLater && (
        <button type="button" className="link" onClick={() => void text.readLater()}>
          {sourceWords.later}
        </button>
      )}
    </section>
  );
}
