/** Makes hidden characters visible. Pure. */

/** Invisible characters and those that reorder others: the same ones as in the terminal and over MCP (domain/text.py). */
const DECEIVING =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class -- these are what is looked for
  /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

/** A text with its deceiving characters written as in JSON: users approve exactly what they see. */
export function escapeHidden(text: string): string {
  return text.replace(DECEIVING, (found) =>
    found.replace(/[^]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
}
