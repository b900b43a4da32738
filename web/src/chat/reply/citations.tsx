import "../../styles/citations.css";

import { hitsOf, type Part } from "@threadkeep/client";
import { useMemo, type RefObject } from "react";

import { CitationPreview } from "./citation-preview";
import { SourceDrawer } from "./source-drawer";
import { useHoveredCitation } from "./use-hovered-citation";

interface Props {
  agentId: string | undefined;
  reply: RefObject<HTMLElement | null>;
  parts: readonly Part[];
  opened: number | null;
  onClose: () => void;
}

/** The passages behind a reply's marks: a preview of the hovered one, and the opened one. */
export function Citations({ agentId, reply, parts, opened, onClose }: Props) {
  const hits = useMemo(() => hitsOf(parts), [parts]);
  const { mark, hold, release } = useHoveredCitation(reply, opened !== null);
  const hit = mark?.isConnected && hits[Number(mark.dataset["source"]) - 1];
  return (
    <>
      {mark && hit && <CitationPreview key={mark.dataset["source"]} mark={mark} hit={hit} onEnter={hold} onLeave={release} />}
      {opened !== null && hits[opened - 1] && <SourceDrawer agentId={agentId} hits={hits} index={opened} onClose={onClose} />}
    </>
  );
}
