import { useEffect, useRef } from "react";

import { standBeside } from "./stand-beside";

const WAIT_MS = 400;

/** Names what shows only a picture (`data-tip`), where the user points at it or comes to it by keyboard. */
export function Tooltip() {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => followTips(place.current!), []);
  // The element has that name already, for those who cannot see it.
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
    standBeside(tip, named, true);
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
