import { useEffect, useRef } from "react";

/** When a closing element has the focus, moves it to another one; not if the user has moved on. */
export function useFocusAfterClose(isOpen: boolean, find: () => HTMLElement | null): void {
  const wasOpen = useRef(false);
  useEffect(() => {
    const { activeElement, body } = document;
    const isLost = activeElement === body || activeElement?.checkVisibility?.({ visibilityProperty: true }) === false;
    if (wasOpen.current && !isOpen && isLost) find()?.focus();
    wasOpen.current = isOpen;
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- looked for when it closes
  }, [isOpen]);
}
