import { useEffect, type RefObject } from "react";

/** Keeps the focus in a list whose rows change by themselves: on its row, or on the next one. */
export function useRowFocus(list: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const rows = list.current!;
    let focused: HTMLElement | null = null;
    const note = ({ target }: Event) => {
      focused = target instanceof HTMLElement && rows.contains(target) ? target : null;
    };
    const forget = () => {
      focused = null; // a click on nothing removes the focus on purpose
    };
    const changed = new MutationObserver((records) => {
      showMenusAgain(rows);
      if (!focused || document.activeElement !== document.body) return;
      if (focused.isConnected) return focused.focus();
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

/** The browser hides an open menu whose row is moved. */
function showMenusAgain(rows: HTMLElement): void {
  for (const menu of rows.querySelectorAll<HTMLElement>("[popover]")) if (!menu.matches(":popover-open")) menu.showPopover();
}
