import { useEffect, useState, type RefObject } from "react";

import { type Part } from "../turn/parts";
import { useChunk } from "./use-chunk";

interface Props {
  /** The reply in which the marks stand. */
  reply: RefObject<HTMLElement | null>;
  parts: readonly Part[];
  /** The number of the source that one opened. */
  opened: number | null;
  onClose: () => void;
}

const loadCitations = () => import("./citations");

/** What a mark `[1]` refers to: shown when one comes near it or opens it; what does that is loaded then. */
export function CitationPlace({ reply, parts, opened, onClose }: Props) {
  const [isNear, setNear] = useState(false);
  useEffect(() => {
    const leaving = new AbortController();
    const look = ({ target }: Event) => (target as Element).matches(".citation") && setNear(true);
    for (const type of ["pointerover", "focusin"]) reply.current?.addEventListener(type, look, { signal: leaving.signal });
    return () => leaving.abort();
  }, [reply]);
  const citations = useChunk(loadCitations, isNear || opened !== null, onClose);
  return citations && <citations.Citations reply={reply} parts={parts} opened={opened} onClose={onClose} />;
}
