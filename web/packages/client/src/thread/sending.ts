/** What the user sends to a conversation: messages, decisions, and to stop. */

import { canWithdraw } from "../outbox/entries.ts";
import { type OutgoingFile } from "../outbox/entry.ts";
import { type Outbox } from "../outbox/outbox.ts";
import { type AbortView, type AnswerBody } from "../schema.ts";
import { type Message } from "../turn/parts.ts";
import { type ThreadContext } from "./context.ts";
import { type Outgoing } from "./outgoing.ts";
import { type Reading } from "./reading.ts";
import { isRunning, isWaiting, mustQueue, tipOf } from "./state.ts";

export interface SendOptions {
  /** The message that it replaces. */
  edited?: Message | null;
  /** Whether it joins the turn that runs; one with files cannot. */
  steers?: boolean;
  /** Whether it stops the turn that runs, whose text stays, and gets its own at once. */
  stops?: boolean;
  files?: readonly OutgoingFile[];
  /** The model that replies; the agent's own if missing. */
  model?: string;
}

export class Sending {
  constructor(
    private readonly thread: ThreadContext,
    private readonly outbox: Outbox,
    private readonly reading: Reading,
    private readonly outgoing: Outgoing,
  ) {}

  /** Sends a message, at the end or in place of `edited`; false if that isn't possible now. True once the outbox has it.

  While a turn runs, it waits until that has ended, or `steers` or `stops` it; a turn that waits for its user is ended by it. */
  async send(content: string, { edited = null, steers = false, stops = false, files = [], model }: SendOptions = {}): Promise<boolean> {
    const state = this.thread.current;
    if (state.sending || state.choosing) return false;
    const queues = !edited && !stops && mustQueue(state);
    if (!queues && !stops && isRunning(state) && !isWaiting(state)) return false;
    const tip = tipOf(state);
    const agentId = state.conversation?.agentId ?? null;
    const turnId = steers ? state.live?.message.turnId : undefined;
    const position = queues
      ? { whenBusy: steers ? ("steer" as const) : ("queue" as const), ...(turnId && { steers: turnId }) }
      : { tip, ...(stops && { whenBusy: "stop" as const }), ...(edited && { edited: { id: edited.id, parentId: edited.parentId } }) };
    const entry = this.outbox.prepare({ kind: "message", conversationId: this.thread.id, agentId, content, files, ...(model && { model }), ...position });
    if (!queues && !edited) await this.reading.showLatest();
    this.reading.outdate();
    this.outgoing.show(entry);
    await this.outbox.add(entry);
    return true;
  }

  /** Sends the user's decision on a request of a turn; false if the user withdrew it before it could be sent. */
  async decide(turnId: string, requestId: string, body: AnswerBody): Promise<boolean> {
    this.outgoing.listen();
    return this.outbox.deliver({ kind: "answer", conversationId: this.thread.id, turnId, requestId, body });
  }

  /** Stops the turn; or withdraws the message that could not be sent yet. */
  async stop(): Promise<void> {
    const { sendingId } = this.thread.current;
    const item = this.outbox.items.get().find(({ entry }) => entry.id === sendingId);
    if (item && canWithdraw(item)) return this.outbox.withdraw(item.entry.id);
    this.thread.dispatch({ type: "stopping" });
    try {
      await this.thread.api.send<AbortView>("POST", this.thread.path("/abort"));
    } catch (error) {
      await this.thread.fail(error);
    }
  }
}
