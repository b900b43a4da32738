/** Keeps a thread up to date: follows the turn that runs, and hears what other clients change. */

import { type OnReturn } from "../platform.ts";
import { type TurnEvent } from "../turn/events.ts";
import { followTurn } from "../turn/follow.ts";
import { type UserEvent, type UserEvents } from "../user-events.ts";
import { Batches } from "./batches.ts";
import { type ThreadContext } from "./context.ts";

/** How fast a block of Markdown is parsed and drawn. */
const CHARACTERS_A_MS = 40;

export interface FollowingOptions {
  events: UserEvents;
  onReturn?: OnReturn;
  /** Calls `draw` when the screen is drawn next. */
  atNextFrame?: (draw: () => void) => void;
  /** A turn has ended, and no queued message continues the conversation. */
  onTurnEnded?: (turnId: string) => void;
}

export class Following {
  #turnId: string | null = null;

  constructor(
    private readonly thread: ThreadContext,
    private readonly options: FollowingOptions,
    private readonly refresh: () => Promise<void>,
  ) {}

  /** Loads what others change: they may start a turn here, or choose a branch. What nobody reported is loaded when the
  user returns. */
  watch(): void {
    const { signal } = this.thread;
    const unlisten = this.options.events.on((event) => this.#hear(event));
    signal.addEventListener("abort", unlisten);
    this.options.onReturn?.(() => this.#look(), signal);
  }

  stop(): void {
    this.#turnId = null;
  }

  #hear({ type, conversationId, turnId }: UserEvent): void {
    if (type === "reset") return this.#look();
    if (conversationId !== this.thread.id) return;
    const isTurn = type === "turn_started" || type === "turn_ended";
    if (type === "conversation_changed" || (isTurn && turnId !== this.#turnId)) this.#look();
  }

  #look(): void {
    const { loading, sending, choosing } = this.thread.current;
    if (!loading && !sending && !choosing) void this.refresh();
  }

  /** Follows the turn that runs, if one does and it is not followed already. */
  followActiveTurn(): void {
    const turnId = this.thread.current.live?.message.turnId;
    if (!turnId || this.#turnId === turnId) return;
    this.#turnId = turnId;
    void this.#follow(turnId);
  }

  async #follow(turnId: string): Promise<void> {
    const { thread } = this;
    const { signal } = thread;
    const batches = new Batches<TurnEvent>((events) => thread.dispatch({ type: "events", turnId, events }), {
      leastMs: () => this.#drawingMs(),
      atNextFrame: this.options.atNextFrame,
    });
    const follower = {
      onEvents: (events: TurnEvent[]) => batches.add(events),
      onLost: () => thread.showConnection("lost"),
      onBack: () => thread.showConnection("good"),
    };
    try {
      await followTurn(thread.api, turnId, follower, signal);
    } catch (error) {
      await thread.fail(error);
    }
    batches.flush();
    if (signal.aborted) return;
    // A message to a turn that waited has begun another, which is followed already.
    if (this.#turnId === turnId) this.#turnId = null;
    thread.dispatch({ type: "ended", turnId });
    if (!thread.current.queued.length) this.options.onTurnEnded?.(turnId);
    // The stored message is the last word: it has what no event carries.
    await this.refresh();
  }

  /** Markdown's last block is parsed again with each piece: a long one is drawn less often, to leave time for typing. */
  #drawingMs(): number {
    const last = this.thread.current.live?.message.parts.at(-1);
    const text = last?.type === "text" ? last.text : "";
    return (text.length - Math.max(0, text.lastIndexOf("\n\n"))) / CHARACTERS_A_MS;
  }
}
