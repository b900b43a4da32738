import { useCallback, useEffect, useRef, useState, type RefObject } from "react";

import { useEscape } from "../../hooks/use-escape";

/** A delay, so that a passing pointer shows nothing, and one that moves to the preview doesn't lose it. */
const SHOW_AFTER_MS = 150;
const HIDE_AFTER_MS = 250;

/** The mark or chip of a citation that the pointer or the focus is on; Escape dismisses it.

`isOff`: the source is open, and says more than a preview. */
export function useHoveredCitation(reply: RefObject<HTMLElement | null>, isOff: boolean) {
  const [mark, setMark] = useState<HTMLElement | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  /** Whether the source was open just now: then the focus has come back to its mark. */
  const wasOff = useRef(false);
  const later = useCallback((next: HTMLElement | null, ms: number) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setMark(next), ms);
  }, []);
  useEffect(() => {
    const article = reply.current;
    if (isOff) wasOff.current = true;
    if (!article || isOff) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    const on = <E extends Event>(type: string, act: (mark: HTMLElement, event: E) => void) =>
      article.addEventListener(
        type,
        (event) => {
          const mark = (event.target as Element).closest<HTMLElement>("[data-source]");
          if (mark) act(mark, event as E);
        },
        { signal },
      );
    on<PointerEvent>("pointerover", (it, { pointerType }) => pointerType !== "touch" && later(it, SHOW_AFTER_MS));
    on("pointerout", () => later(null, HIDE_AFTER_MS));
    on("focusin", (it) => it.matches(":focus-visible") && later(it, 0));
    on("focusout", () => later(null, 0));
    // The pointer or the focus may have been on a mark before this code loaded.
    const near = article.querySelector<HTMLElement>("[data-source]:is(:hover, :focus-visible)");
    if (near && !wasOff.current) later(near, 0);
    wasOff.current = false;
    return () => {
      leaving.abort();
      clearTimeout(timer.current);
      setMark(null);
    };
  }, [reply, isOff, later]);
  useEscape(mark !== null, () => {
    clearTimeout(timer.current);
    setMark(null);
  });
  const hold = useCallback(() => clearTimeout(timer.current), []);
  const release = useCallback(() => later(null, HIDE_AFTER_MS), [later]);
  return { mark, hold, release };
}
