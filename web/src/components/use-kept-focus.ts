import { useEffect, type RefObject } from "react";

/** Keeps the focus in a list whose rows come, go and move by themselves: with its row, or on the next one. */
export function useKeptFocus(list: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const rows = list.current!;
    let focused: HTMLElement | null = null;
    const note = ({ target }: Event) => {
      focused = target instanceof HTMLElement && rows.contains(target) ? target : null;
    };
    const forget = () => {
      focused = null; // a click on nothing takes the focus away, and that is meant
    };
    const changed = new MutationObserver((records) => {
      if (!focused || document.activeElement !== document.body) return;
      if (focused.isConnected) return refocus(focused);
      const gone = records.find(({ removedNodes }) => [...removedNodes].some((it) => it.contains(focused)));
      const near = [gone?.nextSibling, gone?.previousSibling].find((it) => it instanceof HTMLElement);
      near?.querySelector<HTMLElement>("a, button")?.focus();
    });
    document.addEventListener("focusin", note);
    document.addEventListener("pointerdown", forget, { capture: true });
    changed.observe(rows, { childList: true, subtree: true });
    return () => {
      document.removeEventListener("focusin", note);
      document.removeEventListener("pointerdown", forget, { capture: true });
      changed.disconnect();
    };
  }, [list]);
}

/** A row that is moved loses the focus, and an open menu in it closes. */
function refocus(element: HTMLElement): void {
  const menu = element.closest<HTMLElement>("[popover]");
  if (menu && !menu.matches(":popover-open")) menu.showPopover();
  element.focus();
}
