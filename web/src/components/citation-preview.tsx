import { useId, useLayoutEffect, useRef } from "react";

import { type RetrievalHitView } from "../api/schema";
import { Markdown } from "../markdown/markdown";
import { useWords } from "../words";
import { standBeside } from "./stand-beside";

/** The source has the whole passage. */
const MOST_CHARACTERS = 400;

interface Props {
  /** The mark beside which it is shown. */
  mark: HTMLElement;
  hit: RetrievalHitView;
  onEnter: () => void;
  onLeave: () => void;
}

/** What a mark refers to, beside it. It stays for as long as the pointer is on it. */
export function CitationPreview({ mark, hit, onEnter, onLeave }: Props) {
  const words = useWords();
  const id = useId();
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const shown = box.current!;
    // Above everything: the list cuts off what is in it.
    shown.showPopover?.();
    mark.setAttribute("aria-describedby", id);
    // It describes the mark and takes no focus: a table or a link is reached where the passage is opened.
    for (const it of shown.querySelectorAll<HTMLElement>("a, button, [tabindex]")) it.tabIndex = -1;
    const place = () => standBeside(shown, mark);
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
