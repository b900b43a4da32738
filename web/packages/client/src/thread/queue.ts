/** The messages that wait for their turn. */

import { type ThreadContext } from "./context.ts";
import { type Reading } from "./reading.ts";

export class Queue {
  constructor(
    private readonly thread: ThreadContext,
    private readonly reading: Reading,
  ) {}

  async edit(messageId: string, content: string): Promise<void> {
    await this.#change(() => this.thread.api.send("PATCH", this.#path(messageId), { content }));
    this.thread.dispatch({ type: "queuedChanged", messageId, content });
  }

  async remove(messageId: string): Promise<void> {
    await this.#change(() => this.thread.api.send("DELETE", this.#path(messageId)));
    this.thread.dispatch({ type: "queuedChanged", messageId, content: null });
  }

  /** Sends a held message now; the others follow it. */
  async sendHeld(messageId: string): Promise<void> {
    await this.#change(() => this.thread.postOnce(`/queued/${messageId}/send`));
  }

  #path(messageId: string): string {
    return this.thread.path(`/queued/${messageId}`);
  }

  async #change(change: () => Promise<unknown>): Promise<void> {
    this.reading.outdate();
    try {
      await change();
    } finally {
      void this.reading.refresh(); // it may have been sent meanwhile
    }
  }
}
