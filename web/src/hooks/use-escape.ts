/** Who takes Escape: what was opened last. Only where nothing is open, it reaches what goes on behind, a reply that runs. */

import { useLayoutEffect, useRef } from "react";

interface Layer {
  take: () => void;
  /** The dialog in which it was opened. */
  dialog: Element | undefined;
}

/** What is open, in the order in which it was opened. */
const layers: Layer[] = [];
/** What goes on behind it. */
const behind: Layer[] = [];

/** While it is open, takes Escape before all that was opened earlier, wherever the focus is. */
export function useEscape(isOpen: boolean, onEscape: () => void): void {
  useLayer(layers, isOpen, onEscape);
}

/** Takes Escape where nothing is open and no field but the composer's has the focus. */
export function useEscapeBehind(isRunning: boolean, onEscape: () => void): void {
  useLayer(behind, isRunning, onEscape);
}

function useLayer(among: Layer[], isIn: boolean, onEscape: () => void): void {
  const latest = useRef(onEscape);
  useLayoutEffect(() => {
    latest.current = onEscape;
  });
  useLayoutEffect(() => {
    if (!isIn) return;
    // Before anything on the page hears of the key: nothing closes itself on the way, to be missed by who comes next.
    window.addEventListener("keydown", takeEscape, { capture: true }); // the same one for all
    const layer = { take: () => latest.current(), dialog: openDialog() };
    among.push(layer);
    return () => void among.splice(among.indexOf(layer), 1);
  }, [among, isIn]);
}

/** Dialogs are modal: the browser closes the last one, unless something is open in it. */
function openDialog(): Element | undefined {
  return [...document.querySelectorAll("dialog[open]")].at(-1);
}

function takerOf({ target }: Event): Layer | undefined {
  const dialog = openDialog();
  const open = layers.findLast((it) => it.dialog === dialog);
  const isElsewhere = target instanceof Element && target.matches("input, textarea, select") && target.id !== "message";
  return open ?? (dialog || isElsewhere ? undefined : behind.at(-1));
}

function takeEscape(event: KeyboardEvent): void {
  // Escape drops what is being composed when writing Chinese.
  if (event.key !== "Escape" || event.isComposing) return;
  const taker = takerOf(event);
  if (!taker) return;
  event.preventDefault();
  event.stopPropagation();
  taker.take();
}
