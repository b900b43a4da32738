import { useEffect, useRef } from "react";

/** When something closes and takes the focus with it, another element gets it; where the user went elsewhere, none. */
export function useFocusAfter(isOpen: boolean, find: () => HTMLElement | null): void {
  const wasOpen = useRef(false);
  useEffect(() => {
    const { activeElement, body } = document;
    const isLost = activeElement === body || activeElement?.checkVisibility?.({ visibilityProperty: true }) === false;
    if (wasOpen.current && !isOpen && isLost) find()?.focus();
    wasOpen.current = isOpen;
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- looked for when it closes
  }, [isOpen]);
}
