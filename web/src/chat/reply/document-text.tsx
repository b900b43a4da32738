import { requestProblemOf } from "@threadkeep/client";
import { useLayoutEffect, useRef, useState } from "react";

import { Markdown } from "../../markdown/markdown";
import { describeProblem } from "../../ui/problem-bar";
import { useWords } from "../../words";
import { useSourceWords } from "../../words/sources";
import { type ReadText } from "./use-document-text";

/** The document's own text, opened at the passage that is cited. */
export function DocumentText({ text, citedId }: { text: ReadText; citedId: string | null | undefined }) {
  const words = useWords();
  const sourceWords = useSourceWords();
  const cited = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    cited.current?.scrollIntoView({ block: "center" }); // newer browsers return a promise, which an effect must not
  }, []);
  const section = useRef<HTMLElement>(null);
  /** The first passage and its position: it stays there when earlier ones are added. */
  const held = useRef<{ passage: Element; top: number } | null>(null);
  const hold = () => {
    const passage = section.current?.querySelector(".passage");
    held.current = passage ? { passage, top: passage.getBoundingClientRect().top } : null;
  };
  useLayoutEffect(() => {
    const box = section.current?.parentElement;
    if (held.current && box) box.scrollTop += held.current.passage.getBoundingClientRect().top - held.current.top;
    held.current = null;
    // A button that was used for the last time disappears and loses the focus.
    if (document.activeElement === document.body) section.current?.focus({ preventScroll: true });
  }, [text.passages.length]);
  return (
    <section ref={section} tabIndex={-1} aria-label={sourceWords.document} className="document-text">
      {text.hasEarlier && <More label={sourceWords.earlier} read={() => text.readEarlier(hold)} />}
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
      {text.hasLater && <More label={sourceWords.later} read={text.readLater} />}
    </section>
  );
}

function More({ label, read }: { label: string; read: () => Promise<void> }) {
  const words = useWords();
  const [failure, setFailure] = useState("");
  const act = async () => {
    setFailure("");
    await read().catch((error: unknown) => setFailure(describeProblem(words, requestProblemOf(error))));
  };
  return (
    <>
      <button type="button" className="link" onClick={() => void act()}>
        {label}
      </button>
      {failure && (
        <p className="wrong" role="alert">
          {failure}
        </p>
      )}
    </>
  );
}
