import { type SearchHitView } from "@threadkeep/client";
import { GitBranch } from "lucide-react";
import { type ReactNode } from "react";

import { useWords } from "../words";

/** How much of a snippet comes before its first match. */
const MOST_BEFORE = 40;

/** A message that was found, from shortly before its first match, so that it is seen in one or two lines. */
export function FoundMessage({ hit: { snippet, highlights, onPath } }: { hit: SearchHitView }) {
  const words = useWords();
  const characters = [...snippet];
  let at = Math.max(0, (highlights[0]?.begin ?? 0) - MOST_BEFORE);
  const pieces: ReactNode[] = [at > 0 ? "…" : ""];
  for (const { begin, end } of highlights) {
    pieces.push(characters.slice(at, begin).join(""));
    pieces.push(<mark key={begin}>{characters.slice(begin, end).join("")}</mark>);
    at = end;
  }
  pieces.push(characters.slice(at).join(""));
  return (
    <span className="snippet" dir="auto">
      {!onPath && (
        <em>
          <GitBranch aria-hidden /> {words.otherBranch}:{" "}
        </em>
      )}
      {pieces}
    </span>
  );
}

/** A title with what was typed marked where it has it. */
export function MarkedTitle({ title, typed }: { title: string; typed: string }) {
  const at = typed ? title.toLowerCase().indexOf(typed.toLowerCase()) : -1;
  return (
    <span className="title" dir="auto">
      {at < 0 ? (
        title
      ) : (
        <>
          {title.slice(0, at)}
          <mark>{title.slice(at, at + typed.length)}</mark>
          {title.slice(at + typed.length)}
        </>
      )}
    </span>
  );
}
