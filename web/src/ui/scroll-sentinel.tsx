import { useEffect, useRef } from "react";

import { useWords } from "../words";

/** Calls `onSeen` when it is scrolled into view, and again as long as it stays there: at the end of a list, it loads more. */
export function ScrollSentinel({ onSeen }: { onSeen: () => Promise<void> }) {
  const words = useWords();
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const seen = new IntersectionObserver((entries) => {
      if (entries.some((it) => it.isIntersecting)) void onSeen();
    });
    seen.observe(place.current!);
    return () => seen.disconnect();
  });
  return (
    <div ref={place} className="hint">
      {words.loading}
    </div>
  );
}
