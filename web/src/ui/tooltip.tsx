import { useEffect, useRef } from "react";

import { placePopover } from "./place-popover";

const WAIT_MS = 400;

/** Shows the name of an icon (`data-tip`) on hover or keyboard focus. */
export function Tooltip() {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => followTips(place.current!), []);
  // Screen readers already have the element's name.
  return <div ref={place} className="tip" popover="manual" aria-hidden />;
}

function followTips(tip: HTMLElement): () => void {
  const ending = new AbortController();
  const options = { capture: true, signal: ending.signal };
  let waiting: ReturnType<typeof setTimeout> | undefined;
  let shownFor: HTMLElement | null = null;
  const hide = () => {
    clearTimeout(waiting);
    if (tip.matches(":popover-open")) tip.hidePopover();
  };
  const show = (named: HTMLElement) => {
    if (!named.isConnected) return;
    shownFor = named;
    tip.textContent = named.dataset["tip"] ?? "";
    tip.showPopover();
    placePopover(tip, named, true);
  };
  const onPointer = (event: PointerEvent) => {
    hide();
    const named = namedBy(event);
    if (named && event.pointerType === "mouse") waiting = setTimeout(() => show(named), WAIT_MS);
  };
  const onFocus = (event: FocusEvent) => {
    hide();
    const named = namedBy(event);
    if (named?.matches(":focus-visible")) show(named);
  };
  window.addEventListener("pointerover", onPointer, options);
  window.addEventListener("focusin", onFocus, options);
  for (const type of ["focusout", "pointerdown", "keydown", "blur"]) window.addEventListener(type, hide, options);
  const onScroll = ({ target }: Event) => target instanceof Node && target.contains(shownFor) && hide();
  window.addEventListener("scroll", onScroll, options);
  return () => {
    hide();
    ending.abort();
  };
}

function namedBy({ target }: Event): HTMLElement | null {
  const named = target instanceof Element ? target.closest<HTMLElement>("[data-tip]") : null;
  return named?.getAttribute("aria-expanded") === "true" ? null : named; // its menu says more
}
