/** The other tabs of this page: they share a token while they are open, and nothing of it is written to disk. */

import { keyHere } from "./installation";

export type TabMessage =
  /** A tab that was just opened asks who is signed in. */
  | { type: "asked" }
  | { type: "signed-in"; token: string }
  /** A cookie, which all tabs have, signs this user in. */
  | { type: "session"; userId: string }
  | { type: "signed-out"; userId: string };

/** Other applications, and other servers of ours, may be mounted at other paths of the same host. */
const name = () => keyHere(`session.${new URL(".", document.baseURI).pathname}`);

export class SiblingTabs {
  #opened: BroadcastChannel | undefined;

  get #channel(): BroadcastChannel {
    return (this.#opened ??= new BroadcastChannel(name()));
  }

  post(message: TabMessage): void {
    this.#channel.postMessage(message);
  }

  listen(listener: (message: TabMessage) => void): void {
    this.#channel.addEventListener("message", ({ data }: MessageEvent) => isOurs(data) && listener(data));
  }

  /** The token of a signed-in tab; null if none responds in time. */
  askForToken(waitMs: number): Promise<string | null> {
    return new Promise((resolve) => {
      const hear = ({ data }: MessageEvent) => isOurs(data) && data.type === "signed-in" && end(data.token);
      const timer = setTimeout(() => end(null), waitMs);
      const end = (token: string | null) => {
        clearTimeout(timer);
        this.#channel.removeEventListener("message", hear);
        resolve(token);
      };
      this.#channel.addEventListener("message", hear);
      this.post({ type: "asked" });
    });
  }

  close(): void {
    this.#channel.close();
  }
}

/** Anything else at this address may post on the channel. */
function isOurs(data: unknown): data is TabMessage {
  const { type, token, userId } = (data ?? {}) as Record<string, unknown>;
  return (
    type === "asked" ||
    (type === "signed-in" && typeof token === "string") ||
    ((type === "session" || type === "signed-out") && typeof userId === "string")
  );
}
