/** A reply as it is shown: its parts in order, a run of thoughts and searches as one. */

import { isMeasuredImage, type KeptFile } from "./files";
import { isBlank, type Part, type PartOf } from "./parts";

export type Step = PartOf<"thought" | "retrieval">;

/** Where its parts lie in the reply's; `from` names it for as long as the reply grows, as nothing ever moves. */
interface Range {
  from: number;
  to: number;
}

export type Segment = Range &
  (
    | { kind: "text"; text: string }
    | { kind: "steps"; steps: readonly Step[] }
    | { kind: "tool"; call: PartOf<"tool_call"> }
    | { kind: "files"; ids: readonly string[] }
    | { kind: "images"; images: readonly KeptFile[] }
    | { kind: "notice"; message: string }
    | { kind: "question"; question: PartOf<"question"> }
    /** What the user said meanwhile. */
    | { kind: "said"; text: string }
    /** What came of a model call that was made again. */
    | { kind: "superseded"; segments: readonly Segment[] }
  );

export function segmentsOf(parts: readonly Part[]): Segment[] {
  const segments: Segment[] = [];
  parts.forEach((part, at) => {
    const range = { from: at, to: at };
    const own = segmentOf(part, range);
    if (!own) return;
    const next: Segment = part.superseded ? { ...range, kind: "superseded", segments: [own] } : own;
    const joined = join(segments.at(-1), next);
    if (joined) segments[segments.length - 1] = joined;
    else segments.push(next);
  });
  return segments;
}

function segmentOf(part: Part, range: Range): Segment | null {
  switch (part.type) {
    case "text":
      return isBlank(part.text) ? null : { ...range, kind: "text", text: part.text };
    case "thought":
      return isBlank(part.text) && !part.title ? null : { ...range, kind: "steps", steps: [part] };
    case "retrieval":
      // The card of the tool that searched stands for it.
      return part.toolCallId ? null : { ...range, kind: "steps", steps: [part] };
    case "tool_call":
      if (isAsking(part)) return null;
      return { ...range, kind: "tool", call: part };
    case "file":
      if (isMeasuredImage(part)) return { ...range, kind: "images", images: [part] };
      return { ...range, kind: "files", ids: [part.fileId] };
    case "notice":
      return { ...range, kind: "notice", message: part.message };
    case "question":
      return { ...range, kind: "question", question: part };
    case "user_text":
      return { ...range, kind: "said", text: part.text };
    case "card":
      return null;
  }
}

/** The question stands for the call by which the model asks it, unless that fails. */
function isAsking({ server, toolName, status }: PartOf<"tool_call">): boolean {
  return server === "user" && toolName === "ask_user" && !["error", "timeout", "unknown"].includes(status);
}

/** Two that stand side by side as one, where they are of a kind that is shown together. */
function join(last: Segment | undefined, { to, ...next }: Segment): Segment | null {
  if (last?.kind === "steps" && next.kind === "steps") return { ...last, to, steps: [...last.steps, ...next.steps] };
  if (last?.kind === "files" && next.kind === "files") return { ...last, to, ids: [...last.ids, ...next.ids] };
  if (last?.kind === "images" && next.kind === "images") return { ...last, to, images: [...last.images, ...next.images] };
  if (last?.kind === "superseded" && next.kind === "superseded") {
    const [first] = next.segments;
    const inner = join(last.segments.at(-1), first!);
    const segments = inner ? last.segments.with(-1, inner) : [...last.segments, first!];
    return { ...last, to, segments };
  }
  return null;
}
