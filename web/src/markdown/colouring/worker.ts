/** Runs beside the page: finding the colours of a first block takes half a second, in which nobody could type. */

import { type GrammarState } from "shiki/core";

import { highlight } from "./highlight";
import type { Answered, Asked } from "./messages";

/** How far each block was read: where one piece ends in a string or a comment, the next one begins in it. */
const states = new Map<number, GrammarState | undefined>();

addEventListener("message", ({ data }: MessageEvent<Asked>) => {
  if ("forgotten" in data) states.delete(data.forgotten);
  else void answer(data);
});

async function answer({ block, language, text }: Exclude<Asked, { forgotten: number }>): Promise<void> {
  const found = await highlight(text, language, states.get(block)).catch(() => null);
  if (found) states.set(block, found.state);
  postMessage({ block, lines: found?.lines ?? null } satisfies Answered);
}
