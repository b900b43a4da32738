/** What was typed and not yet sent, for each conversation. */

const PREFIX = "threadkeep.draft.";

export function readDraft(key: string): string {
  return localStorage.getItem(PREFIX + key) ?? "";
}

export function keepDraft(key: string, text: string): void {
  if (text) localStorage.setItem(PREFIX + key, text);
  else localStorage.removeItem(PREFIX + key);
}

export function forgetDrafts(): void {
  for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
}
