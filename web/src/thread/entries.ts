/** Messages as they are shown: the active path, on which the versions of a reply are one entry. */

import { type Message } from "../turn/parts";

export interface Entry {
  key: string;
  /** Oldest first; all but a reply have one. */
  versions: readonly Message[];
  /** Which of them is on the active path. */
  current: number;
}

export function entriesOf(messages: readonly Message[]): Entry[] {
  const replies = new Map<string, Message[]>();
  for (const it of messages) {
    if (it.role === "assistant" && it.parentId) replies.set(it.parentId, [...(replies.get(it.parentId) ?? []), it]);
  }
  return messages
    .filter((it) => it.status !== "OVERWRITTEN")
    .map((message) => {
      const versions = (message.role === "assistant" && replies.get(message.parentId ?? "")) || [message];
      return { key: versions[0]!.id, versions, current: versions.indexOf(message) };
    });
}

/** Whether the model sees it only through the summary. */
export function isArchived(entry: Entry): boolean {
  return entry.versions[entry.current]!.archived;
}
