import { type PassagesView, type PassageView } from "@threadkeep/client";
import { useCallback, useEffect, useState } from "react";

import { api } from "../../api/api";

/** How many passages before the cited one to show at first. */
const BEFORE = 5;
const PAGE = 20;

export interface ReadText {
  passages: readonly PassageView[];
  hasEarlier: boolean;
  hasLater: boolean;
  /** `onRead`: just before it is shown. */
  readEarlier: (onRead: () => void) => Promise<void>;
  readLater: () => Promise<void>;
}

/** A document around a passage. Loads nothing if the user may not read the agent's documents. */
export function useDocumentText(agentId: string | undefined, chunkId: string | null | undefined): ReadText {
  const [{ passages, total }, setText] = useState<{ passages: readonly PassageView[]; total: number }>({ passages: [], total: 0 });
  const [documentId, position] = placeOf(chunkId);
  const read = useCallback(
    async (fromPosition: number, limit: number, { signal, onRead }: { signal?: AbortSignal; onRead?: () => void } = {}) => {
      const path = `/api/agents/${agentId}/documents/${documentId}/passages`;
      const page = await api.get<PassagesView>(path, { fromPosition, limit }, signal);
      onRead?.();
      setText(({ passages: known }) => {
        const all = new Map([...known, ...page.items].map((it) => [it.position, it]));
        return { passages: [...all.values()].sort((a, b) => a.position - b.position), total: page.total };
      });
    },
    [agentId, documentId],
  );
  useEffect(() => {
    if (!agentId || !documentId) return;
    const leaving = new AbortController();
    read(Math.max(0, position - BEFORE), PAGE, leaving).catch(() => {}); // deleted, or somebody else's
    return () => leaving.abort();
  }, [agentId, documentId, position, read]);
  const first = passages[0]?.position ?? 0;
  const next = (passages.at(-1)?.position ?? -1) + 1;
  const start = Math.max(0, first - PAGE);
  return {
    passages,
    hasEarlier: first > 0,
    hasLater: next < total,
    readEarlier: (onRead) => read(start, first - start, { onRead }),
    readLater: () => read(next, PAGE),
  };
}

/** A chunk's id is its document's id and its position there. */
function placeOf(chunkId: string | null | undefined): [string, number] {
  const [documentId = "", position = ""] = (chunkId ?? "").split(":");
  return /^\d+$/.test(position) ? [documentId, Number(position)] : ["", 0];
}
