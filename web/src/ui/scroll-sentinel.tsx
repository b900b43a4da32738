import { useEffect, useRef } from "react";

import { useWords } from "../words";

/** Does something when it is scrolled into view, and again for as long as it stays there. */
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
