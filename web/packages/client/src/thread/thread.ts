/** One open conversation: its state, and what the user can do in it. */

import { type ApiClient } from "../api-client.ts";
import { type ClientTools } from "../client-tools.ts";
import { NO_COPIES, type Copies } from "../copies.ts";
import { type OutgoingMessage } from "../outbox/entry.ts";
import { type OtherTabs } from "../outbox/ports.ts";
import { type ConversationPatch, type ConversationView, type FeedbackBody, type FeedbackView } from "../schema.ts";
import { type Message } from "../turn/parts.ts";
import { type Store } from "../store.ts";
import { Branches } from "./branches.ts";
import { ThreadContext } from "./context.ts";
import { Following, type FollowingOptions } from "./following.ts";
import { Outgoing, type OutgoingOptions } from "./outgoing.ts";
import { Queue } from "./queue.ts";
import { Reading } from "./reading.ts";
import { Sending } from "./sending.ts";
import { type ThreadState } from "./state.ts";

export interface ThreadOptions extends FollowingOptions, OutgoingOptions {
  api: ApiClient;
  /** What the model may call here. */
  tools?: ClientTools;
  /** Runs `work` while no other tab runs work of the same name. */
  alone?: OtherTabs["alone"];
  copies?: Copies;
}

export class Thread {
  readonly state: Store<ThreadState>;
  readonly reading: Reading;
  readonly sending: Sending;
  readonly branches: Branches;
  readonly queue: Queue;
  #context: ThreadContext;
  #following: Following;
  #outgoing: Outgoing;

  constructor(
    readonly id: string,
    private readonly options: ThreadOptions,
  ) {
    const context = new ThreadContext(id, options.api);
    const refresh = () => this.reading.refresh();
    const followActiveTurn = () => this.#following.followActiveTurn();
    this.state = context.state;
    this.reading = new Reading(context, followActiveTurn, options.copies ?? NO_COPIES);
    this.#following = new Following(context, options, refresh);
    this.#outgoing = new Outgoing(context, options, refresh, followActiveTurn);
    this.sending = new Sending(context, options.outbox, this.reading, this.#outgoing);
    this.branches = new Branches(context, this.reading, this.#outgoing, followActiveTurn, options.tools);
    this.queue = new Queue(context, this.reading);
    this.#context = context;
  }

  /** It is shown: reads the latest messages and follows the turn that runs, if one does. */
  async join(): Promise<void> {
    this.#context.open();
    this.#following.watch();
    const { tools, outbox, alone } = this.options;
    tools?.attend(this.#context, outbox, alone);
    this.#outgoing.listen();
    if (this.state.get().conversation === null) this.#context.dispatch({ type: "opening" });
    this.#outgoing.forgetSettled();
    if (!this.state.get().sending) await this.reading.refresh();
    this.#outgoing.showWaiting();
  }

  /** It is no longer shown. The turn continues without us. */
  leave(): void {
    this.#context.close();
    this.#following.stop();
    this.#outgoing.stop();
  }

  /** Shows a new conversation with its first message, which the outbox sends. */
  begin(conversation: ConversationView, first: OutgoingMessage): void {
    this.#context.dispatch({ type: "created", conversation });
    this.#outgoing.listen();
    // An agent may have one conversation with each user: then it is loaded before anything is added.
    if (!conversation.messageCount) this.#outgoing.show(first);
  }

  async change(patch: ConversationPatch): Promise<void> {
    const conversation = await this.#context.api.send<ConversationView>("PATCH", this.#context.path(), patch);
    this.#context.dispatch({ type: "changed", conversation });
  }

  /** Rates a reply; a rating of null takes an earlier one back. Shown at once, and taken back if the server refuses it. */
  async rate(message: Message, body: FeedbackBody): Promise<void> {
    const show = (feedback: FeedbackView | undefined) =>
      this.#context.dispatch({ type: "rated", messageId: message.id, feedback });
    const { rating, note = "", shareText = false } = body;
    show(rating ? { rating, note, shareText } : undefined);
    try {
      await this.#context.api.send("POST", `/api/messages/${message.id}/feedback`, body);
    } catch (error) {
      show(message.feedback);
      throw error;
    }
  }

  /** Another client has set the title. */
  retitle(title: string | null): void {
    const { conversation } = this.state.get();
    if (conversation && conversation.title !== title) this.#context.dispatch({ type: "changed", conversation: { ...conversation, title } });
  }

  /** Hides the problem that is shown. */
  dismiss(): void {
    this.#context.dispatch({ type: "dismissed" });
  }
}
