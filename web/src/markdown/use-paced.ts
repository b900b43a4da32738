import { startTransition, useEffect, useRef, useState } from "react";

/** Reading Markdown takes time that grows with its last block: a long one is drawn less often. */
const CHARACTERS_A_MS = 40;

export function paceOf(text: string): number {
  return (text.length - Math.max(0, text.lastIndexOf("\n\n"))) / CHARACTERS_A_MS;
}

/** The text as far as it is to be drawn: while it grows, in steps that leave time for typing. */
export function usePaced(text: string, live: boolean): string {
  const [shown, setShown] = useState(text);
  const latest = useRef(text);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  latest.current = text;
  useEffect(() => {
    if (!live || timer.current !== null || shown === text) return;
    timer.current = setTimeout(() => {
      timer.current = null;
      startTransition(() => setShown(latest.current));
    }, paceOf(text));
  }, [text, live, shown]);
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current);
      timer.current = null;
    },
    [],
  );
  return live ? shown : text;
}
