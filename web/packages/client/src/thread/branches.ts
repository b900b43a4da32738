/** The versions of a conversation: another reply, another branch, a fork. */

import { type ClientTools } from "../client-tools.ts";
import { requestProblemOf } from "../errors.ts";
import { type ConversationView, type StartedTurnView } from "../schema.ts";
import { type Message } from "../turn/parts.ts";
import { type ThreadContext } from "./context.ts";
import { type Outgoing } from "./outgoing.ts";
import { messagesBefore } from "./path.ts";
import { type Reading } from "./reading.ts";
import { PATH_CHANGED, isBusy, tipOf } from "./state.ts";

export class Branches {
  constructor(
    private readonly thread: ThreadContext,
    private readonly reading: Reading,
    private readonly outgoing: Outgoing,
    private readonly followActiveTurn: () => void,
    private readonly tools?: ClientTools,
  ) {}

  /** Asks the model, or another one, for another reply; false if that isn't possible now, or the server refuses. */
  async regenerate(replaced: Message, model?: string): Promise<boolean> {
    const { thread } = this;
    if (isBusy(thread.current)) return false;
    const tip = tipOf(thread.current);
    thread.dispatch({ type: "regenerating", replaced });
    this.reading.outdate();
    try {
      const turn = await thread.postOnce<StartedTurnView>("/regenerate", { messageId: replaced.id, tip, ...(model && { model }), ...this.tools?.offered });
      thread.dispatch({ type: "started", turn });
      this.followActiveTurn();
      return true;
    } catch (error) {
      this.outgoing.refuse(error, requestProblemOf(error));
      // A turn may have begun although its response was lost.
      if (thread.current.problem?.code !== PATH_CHANGED) await this.reading.refresh();
      return false;
    }
  }

  /** Shows a sibling of a message and what follows it, here and wherever the conversation is open. */
  async choose(messageId: string, replaced: Message): Promise<void> {
    await this.#choose(messageId, async () => {
      const conversation = await this.reading.latest();
      const at = conversation.messages.findIndex((it) => it.parentId === replaced.parentId);
      if (at >= 0) {
        const messages = conversation.messages.slice(at);
        return this.thread.dispatch({ type: "chosen", conversation, replaced, messages, hasNewer: false });
      }
      const parent = messagesBefore(this.thread.current.messages, replaced).at(-1);
      if (!parent) return this.reading.refresh(true);
      // The branch is long: load it from its beginning, where the user looks.
      const { items, nextCursor } = await this.reading.page({ order: "asc", afterSeq: parent.seq });
      this.thread.dispatch({ type: "chosen", conversation, replaced, messages: items, hasNewer: nextCursor !== null });
    });
  }

  /** Shows the branch with a message, and that message. */
  async showBranch(messageId: string, seq: number): Promise<void> {
    await this.#choose(messageId, async () => {
      await this.reading.refresh(true);
      await this.reading.showAt(seq);
    });
  }

  /** Shows the path that another client has chosen or continued. */
  async showPath(): Promise<void> {
    this.thread.dispatch({ type: "dismissed" });
    await this.reading.refresh(true);
  }

  /** A new conversation with everything up to a message. */
  async fork(messageId: string): Promise<ConversationView> {
    return this.thread.api.send<ConversationView>("POST", this.thread.path("/fork"), { messageId });
  }

  async #choose(messageId: string, show: () => Promise<void>): Promise<void> {
    const { thread } = this;
    if (isBusy(thread.current)) return;
    const tip = tipOf(thread.current);
    this.reading.outdate();
    thread.dispatch({ type: "choosing" });
    try {
      await thread.api.send("POST", thread.path("/path"), { messageId, tip });
      await show();
      thread.dispatch({ type: "settled" });
    } catch (error) {
      if (!thread.signal.aborted) this.outgoing.refuse(error, requestProblemOf(error));
    }
  }
}
