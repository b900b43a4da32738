/** The user's events, which one tab reads for all. */

import { followUserEvents, type UserEvent, type UserEventListener } from "@threadkeep/client";

import { api } from "./api";

/** Calls `listener` with each event until the returned function is called. */
export function followSharedUserEvents(userId: string, listener: UserEventListener): () => void {
  const closing = new AbortController();
  // Every address has its own server, and every tab may have signed in as somebody else.
  const name = `threadkeep.events.${new URL(document.baseURI).pathname}.${userId}`;
  const channel = new BroadcastChannel(name);
  channel.onmessage = (message: MessageEvent<UserEvent>) => listener(message.data);
  const tellAll = (event: UserEvent) => {
    channel.postMessage(event);
    listener(event);
  };
  const read = () => followUserEvents(api, tellAll, closing.signal);
  // A browser opens six connections to a server: one tab has the stream, and the next one when that is closed.
  // Without TLS there are no locks, and each tab reads for itself.
  const locks = navigator.locks as LockManager | undefined;
  if (locks) locks.request(name, { signal: closing.signal }, read).catch(() => {});
  else void read();
  return () => {
    closing.abort();
    channel.close();
  };
}
