/** The active path of a conversation: a chain of messages, each after its parent. Pure. */

import { type SiblingsView } from "../schema.ts";
import { type Message } from "../turn/parts.ts";

/** The same for all siblings: switching between them keeps the rendered elements and the focus in them. */
export function keyOf({ id, siblings }: Message): string {
  return siblings?.ids[0] ?? id;
}

/** The siblings of a message with one more, the newest. */
export function withSibling({ id, siblings }: Message, newest: string): SiblingsView {
  const ids = [...(siblings?.ids ?? [id]), newest];
  return { ids, index: ids.length - 1 };
}

/** The messages before the one that a new branch replaces, which may have left the path since. */
export function messagesBefore(messages: readonly Message[], replaced: Message): readonly Message[] {
  const at = messages.findIndex((it) => it.id === replaced.id);
  if (at >= 0) return messages.slice(0, at);
  return messages.slice(0, messages.findIndex((it) => it.id === replaced.parentId) + 1);
}

/** The loaded messages appended to the known ones; null if neither follows the other. */
export function appended(known: readonly Message[], read: readonly Message[]): readonly Message[] | null {
  const [first] = read;
  if (!first) return known;
  const at = known.findIndex((it) => it.id === first.parentId);
  return at < 0 ? null : [...known.slice(0, at + 1), ...read];
}
