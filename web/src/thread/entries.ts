/** Messages as they are shown: the versions of a reply are one entry. */

import { type Message } from "../turn/parts";

export interface Entry {
  key: string;
  /** Oldest first; all but a reply have one. */
  versions: readonly Message[];
}

export function entriesOf(messages: readonly Message[]): Entry[] {
  const entries: { key: string; versions: Message[] }[] = [];
  for (const message of messages) {
    const last = entries.at(-1);
    const before = last?.versions.at(-1);
    if (last && message.role === "assistant" && before?.role === "assistant" && before.status === "OVERWRITTEN")
      last.versions.push(message);
    else entries.push({ key: message.id, versions: [message] });
  }
  return entries;
}

/** Whether the model sees it only through the summary. */
export function isArchived(entry: Entry): boolean {
  return entry.versions.at(-1)!.archived;
}
