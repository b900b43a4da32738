import { useEffect, useState, type RefObject } from "react";

/** How far outside the visible part of the list elements are prepared. */
const NEAR = "400px";

/** Whether an element is near the visible part of the list. */
export function useNearlyVisible(place: RefObject<HTMLElement | null>): boolean {
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    if (isNear || !place.current) return;
    const come = new IntersectionObserver(
      (entries) => {
        if (entries.some((it) => it.isIntersecting)) setNear(true);
      },
      // A margin only works around the scrolling element.
      { root: place.current.closest(".scroller"), rootMargin: NEAR },
    );
    come.observe(place.current);
    return () => come.disconnect();
  }, [isNear, place]);
  return isNear;
}
