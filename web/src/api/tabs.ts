/** The tabs of one browser tell one another which conversation has taken another path: `/ws` tells of turns only. */

const NAME = "threadkeep.path";

let channel: BroadcastChannel | null = null;

function opened(): BroadcastChannel | null {
  if (typeof BroadcastChannel === "undefined") return null;
  return (channel ??= new BroadcastChannel(NAME));
}

export function tellTabs(conversationId: string): void {
  opened()?.postMessage(conversationId);
}

/** Calls `told` when another tab has chosen a branch of this conversation. */
export function hearTabs(conversationId: string, told: () => void, signal: AbortSignal): void {
  const hear = (message: MessageEvent) => message.data === conversationId && told();
  opened()?.addEventListener("message", hear, { signal });
}
