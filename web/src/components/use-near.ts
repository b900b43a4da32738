import { useEffect, useState, type RefObject } from "react";

/** How far from what is seen of the list something is made ready. */
const NEAR = "400px";

/** Whether an element has come near what is seen of the list. */
export function useNear(place: RefObject<HTMLElement | null>): boolean {
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    if (isNear || !place.current) return;
    const come = new IntersectionObserver(
      (entries) => {
        if (entries.some((it) => it.isIntersecting)) setNear(true);
      },
      // A margin counts only around the element that scrolls.
      { root: place.current.closest(".scroller"), rootMargin: NEAR },
    );
    come.observe(place.current);
    return () => come.disconnect();
  }, [isNear, place]);
  return isNear;
}
