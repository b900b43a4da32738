import { useEffect, useRef } from "react";

/** Longer ones are shown as they were written: nothing may freeze. */
const MOST_DRAWN = 5000;

export function Formula({ text, display }: { text: string; display: boolean }) {
  const place = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (text.length > MOST_DRAWN) return;
    let wanted = true;
    void import("./math").then((math) => {
      if (wanted && place.current) math.draw(text, display, place.current);
    });
    return () => {
      wanted = false;
    };
  }, [text, display]);
  // What the library draws is not React's to change: another formula gets another element.
  return (
    <span key={text} ref={place} className={display ? "formula display" : "formula"}>
      {text}
    </span>
  );
}
