import { type Part } from "@threadkeep/client";
import { useEffect, useState, type RefObject } from "react";

import { useChunk } from "../../ui/use-chunk";

interface Props {
  /** The agent whose documents were searched. */
  agentId: string | undefined;
  /** The reply with the marks. */
  reply: RefObject<HTMLElement | null>;
  parts: readonly Part[];
  /** The number of the source that the user opened. */
  opened: number | null;
  onClose: () => void;
}

const loadCitations = () => import("./citations");

/** What a mark `[1]` or a chip refers to: shown when the user points at it or opens it, with code that loads then. */
export function LazyCitations({ agentId, reply, parts, opened, onClose }: Props) {
  const [isPointedAt, setPointedAt] = useState(false);
  useEffect(() => {
    const leaving = new AbortController();
    const look = ({ target }: Event) => (target as Element).closest("[data-source]") && setPointedAt(true);
    for (const type of ["pointerover", "focusin"]) reply.current?.addEventListener(type, look, { signal: leaving.signal });
    return () => leaving.abort();
  }, [reply]);
  const citations = useChunk(loadCitations, isPointedAt || opened !== null, onClose);
  return citations && <citations.Citations agentId={agentId} reply={reply} parts={parts} opened={opened} onClose={onClose} />;
}
