/** How many copies a device keeps. Pure. */

/** What the server said at a path. */
export interface Copy {
  path: string;
  json: string;
  /** When it was kept: a conversation, when it was last open. */
  at: number;
}

export interface CopySize {
  path: string;
  at: number;
  /** In characters. */
  size: number;
}

export interface Rows {
  get(path: string): Promise<Copy | undefined>;
  put(copy: Copy): Promise<unknown>;
  delete(path: string): Promise<unknown>;
  clear(): Promise<unknown>;
  sizes(): Promise<CopySize[]>;
}

/** Where copies outlive the page. */
export interface Table {
  /** Changes all or nothing, while no other tab does. */
  change<T>(work: (rows: Rows) => Promise<T>): Promise<T>;
}

export const MOST_CONVERSATIONS = 50;
/** Of all copies together, in characters. */
export const MOST = 10_000_000;
/** Of one copy. */
export const LARGEST = 2_000_000;

const CONVERSATION = /^\/api\/conversations\/([^/]+)$/;

/** The conversation that it copies; undefined if it copies something else. */
export function conversationIn(path: string): string | undefined {
  return CONVERSATION.exec(path)?.[1];
}

/** The conversations that there is no room for, the one opened longest ago first; `share`: how much of the room to use. */
export function excess(all: readonly CopySize[], share = 1): string[] {
  let size = all.reduce((sum, it) => sum + it.size, 0);
  const conversations = all.filter(({ path }) => conversationIn(path)).sort((a, b) => a.at - b.at);
  let count = conversations.length;
  return conversations
    .filter((it) => {
      if (count <= MOST_CONVERSATIONS * share && size <= MOST * share) return false;
      count--;
      size -= it.size;
      return true;
    })
    .map(({ path }) => path);
}
