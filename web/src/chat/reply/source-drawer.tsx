import "../../styles/drawer.css";

import { type RetrievalHitView } from "@threadkeep/client";
import { ExternalLink, X } from "lucide-react";
import { useLayoutEffect, useRef } from "react";

import { Markdown } from "../../markdown/markdown";
import { IconButton } from "../../ui/icon-button";
import { useWords } from "../../words";
import { useSourceWords } from "../../words/sources";
import { DocumentText } from "./document-text";
import { useDocumentText } from "./use-document-text";

interface Props {
  /** The agent whose documents were searched. */
  agentId: string | undefined;
  /** All passages found for the reply. */
  hits: readonly RetrievalHitView[];
  /** The number of the one that is cited. */
  index: number;
  onClose: () => void;
}

/** A document at the passage that a reply cites; without the right to read it, the passages that were found. */
export function SourceDrawer({ agentId, hits, index, onClose }: Props) {
  const words = useWords();
  const sourceWords = useSourceWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const cited = hits[index - 1]!;
  const others = othersOf(hits, cited);
  const text = useDocumentText(agentId, cited.chunkId);
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    heading.current?.focus();
    return () => shown?.close();
  }, []);
  return (
    <dialog ref={dialog} className="drawer source-drawer" aria-labelledby="source-title" onClose={() => !dialog.current?.open && onClose()}>
      <header>
        <h2 id="source-title" ref={heading} tabIndex={-1}>
          {cited.source}
        </h2>
        <IconButton icon={X} label={words.close} onClick={() => dialog.current?.close()} />
      </header>
      {cited.url && /^https?:/.test(cited.url) && URL.canParse(cited.url) && (
        <p>
          <a className="site" href={cited.url} target="_blank" rel="noopener noreferrer nofollow">
            <ExternalLink aria-hidden /> {words.openSite(new URL(cited.url).host)}
          </a>
        </p>
      )}
      {text.passages.length > 0 ? (
        <DocumentText text={text} citedId={cited.chunkId} />
      ) : (
        <>
          <h3>{sourceWords.cited}</h3>
          <Passage hit={cited} isCited />
        </>
      )}
      {others.length > 0 && (
        <>
          <h3>{sourceWords.othersFound}</h3>
          {others.map((hit, at) => (
            <Passage key={at} hit={hit} />
          ))}
        </>
      )}
    </dialog>
  );
}

function Passage({ hit, isCited }: { hit: RetrievalHitView; isCited?: boolean }) {
  const words = useWords();
  return (
    <div className="passage" data-cited={isCited}>
      <p className="about">
        {hit.page != null && <span>{words.page(hit.page)}</span>}
        <span>{words.score(Math.round(hit.score * 100))}</span>
      </p>
      <Markdown text={hit.text} isPassage />
    </div>
  );
}

/** What else was found in the same document, each once, in the order of its pages. */
function othersOf(hits: readonly RetrievalHitView[], cited: RetrievalHitView): RetrievalHitView[] {
  const idOf = (hit: RetrievalHitView) => hit.chunkId ?? hit.text;
  const isSame = (hit: RetrievalHitView) => (cited.documentId ? hit.documentId === cited.documentId : hit.source === cited.source);
  const others = new Map(hits.filter((it) => isSame(it) && idOf(it) !== idOf(cited)).map((it) => [idOf(it), it]));
  return [...others.values()].sort((a, b) => (a.page ?? 0) - (b.page ?? 0));
}
