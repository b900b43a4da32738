/** The user's events, which one tab reads for all. */

import { type FollowUserEvents, followUserEvents, type UserEvent } from "../user-events.ts";

export const followSharedUserEvents: FollowUserEvents = (api, userId, listener, signal) => {
  // Every address has its own server, and every tab may have signed in as somebody else.
  const name = `threadkeep.events.${api.address}.${userId}`;
  const channel = new BroadcastChannel(name);
  channel.onmessage = (message: MessageEvent<UserEvent>) => listener(message.data);
  const tellAll = (event: UserEvent) => {
    channel.postMessage(event);
    listener(event);
  };
  const read = () => followUserEvents(api, tellAll, signal);
  // A browser opens six connections to a server: one tab has the stream, and the next one when that is closed.
  // Without TLS there are no locks, and each tab reads for itself.
  const locks = navigator.locks as LockManager | undefined;
  if (locks) locks.request(name, { signal }, read).catch(() => {});
  else void read();
  signal.addEventListener("abort", () => channel.close());
};
