import { type RetrievalHitView } from "@threadkeep/client";
import { useId, useLayoutEffect, useRef } from "react";

import { Markdown } from "../../markdown/markdown";
import { placePopover } from "../../ui/place-popover";
import { useWords } from "../../words";

/** The source has the whole passage. */
const MOST_CHARACTERS = 400;

interface Props {
  /** The mark beside which it is shown. */
  mark: HTMLElement;
  hit: RetrievalHitView;
  onEnter: () => void;
  onLeave: () => void;
}

/** A preview of a mark's source, beside it. It stays while the pointer is on it. */
export function CitationPreview({ mark, hit, onEnter, onLeave }: Props) {
  const words = useWords();
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const shown = box.current!;
    // In the top layer: the list clips its content.
    shown.showPopover?.();
    mark.setAttribute("aria-describedby", id);
    // It describes the mark and takes no focus: tables and links are reachable in the opened passage.
    for (const it of shown.querySelectorAll<HTMLElement>("a, button, [tabindex]")) it.tabIndex = -1;
    const place = () => placePopover(shown, mark);
    place();
    window.addEventListener("scroll", place, { capture: true, passive: true });
    window.addEventListener("resize", place);
    return () => {
      mark.removeAttribute("aria-describedby");
      window.removeEventListener("scroll", place, { capture: true });
      window.removeEventListener("resize", place);
    };
  }, [mark, id]);
  return (
    <div ref={box} id={id} className="citation-preview" role="tooltip" popover="manual" onPointerEnter={onEnter} onPointerLeave={onLeave}>
      <p className="from">
        <strong>{hit.source}</strong>
        {hit.page != null && <small>{words.page(hit.page)}</small>}
        <small>{words.score(Math.round(hit.score * 100))}</small>
      </p>
      <div className="snippet">
        <Markdown text={hit.text.slice(0, MOST_CHARACTERS)} isPassage />
      </div>
    </div>
  );
}
