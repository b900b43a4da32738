/** Parts: what a message is made of, in the order in which it arrived. Whatever else it shows is a view of them. */

import { type CitationView, type MessageView, type RetrievalHitView } from "../schema.ts";

export type Part = MessageView["parts"][number];
export type PartOf<T extends Part["type"]> = Extract<Part, { type: T }>;

/** What the page keeps of a message. The API's views of its parts are left out: there is one source. */
export type Message = Omit<
  MessageView,
  "content" | "contentType" | "thoughtProcess" | "citations" | "artifactIds" | "toolCalls"
>;

const BLANK_LINE = "\n\n";
const MOST_SNIPPET_CHARACTERS = 300;
/** Anything but the characters that show nothing: the same ones as on the server. */
const VISIBLE =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class -- these are what is looked for
  /[^\t\n\v\f\r\x1c-\x20\x85\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180e\u2000-\u200f\u2028\u2029\u202f\u205f-\u2064\u2800\u3000\u3164\ufeff\uffa0]/;

export function isBlank(text: string): boolean {
  return !VISIBLE.test(text);
}

/** A message's text: with a blank line where a tool call, the user or another model call separates two texts. */
export function contentOf(parts: readonly Part[]): string {
  let content = "";
  let hasText = false;
  let isBroken = false;
  let iteration = 0;
  for (const part of parts) {
    if (part.superseded) continue;
    if (part.iteration !== iteration || part.type === "tool_call" || part.type === "user_text") isBroken = true;
    iteration = part.iteration;
    if (part.type !== "text") continue;
    if (isBroken && hasText) content += BLANK_LINE;
    isBroken = false;
    hasText ||= !isBlank(part.text);
    content += part.text;
  }
  return content;
}

/** Everything that was found, in order: the model cites the first as 1. */
export function hitsOf(parts: readonly Part[]): RetrievalHitView[] {
  return parts.flatMap((part) => (part.type === "retrieval" && !part.superseded ? part.hits : []));
}

/** Everything that was found, a chunk only once, under the number by which the model cites it. */
export function citationsOf(parts: readonly Part[]): CitationView[] {
  const seen = new Set<string>();
  return hitsOf(parts).flatMap((hit, index) => {
    if (hit.chunkId && seen.has(hit.chunkId)) return [];
    if (hit.chunkId) seen.add(hit.chunkId);
    return [citation(hit, index + 1)];
  });
}

function citation(hit: RetrievalHitView, index: number): CitationView {
  const fileName = hit.fileName || (hit.documentId ? hit.source : null);
  return {
    index,
    title: hit.source,
    snippet: firstCharacters(hit.text, MOST_SNIPPET_CHARACTERS),
    score: hit.score,
    ...(hit.url && { url: hit.url }),
    ...(fileName && { fileName }),
    ...(hit.documentId && { documentId: hit.documentId }),
    ...(hit.page != null && { page: hit.page }),
  };
}

function firstCharacters(text: string, count: number): string {
  // A character takes two units at most, and a text may be long.
  return [...text.slice(0, 2 * count)].slice(0, count).join("");
}
