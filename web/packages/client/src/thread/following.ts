/** Keeps a thread up to date: follows the turn that runs, and hears what other clients change. */

import { type ConversationChange, type ConversationSocket } from "../socket";
import { type TurnEvent } from "../turn/events";
import { followTurn } from "../turn/follow";
import { Batches } from "./batches";
import { type ThreadContext } from "./context";
import { MOVED } from "./reading";
import { tipOf } from "./state";

/** How fast a block of Markdown is parsed and drawn. */
const CHARACTERS_A_MS = 40;

export interface FollowingOptions {
  socket: ConversationSocket;
  /** Calls `look` when the conversation may have changed unnoticed, until the returned function is called. */
  watch?: (conversationId: string, look: () => void) => () => void;
  /** Calls `draw` when the screen is drawn next. */
  atNextFrame?: (draw: () => void) => void;
  /** A turn has ended, and no queued message continues the conversation. */
  onTurnEnded?: (turnId: string) => void;
}

export class Following {
  #turnId: string | null = null;
  #unsubscribe: (() => void) | null = null;

  constructor(
    private readonly thread: ThreadContext,
    private readonly options: FollowingOptions,
    private readonly refresh: () => Promise<void>,
  ) {}

  /** Changes that nobody reported, as while the socket was closed, are loaded when the user returns. */
  watch(): void {
    const { signal } = this.thread;
    const stop = this.options.watch?.(this.thread.id, () => {
      const { loading, sending, choosing } = this.thread.current;
      if (!loading && !sending && !choosing) void this.refresh();
    });
    if (stop) signal.addEventListener("abort", stop);
  }

  stop(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#turnId = null;
  }

  /** Subscribes to the changes that other clients make: they may start a turn here or choose a branch. */
  subscribe(sessionId: string | undefined): void {
    if (!sessionId || this.#unsubscribe || this.thread.signal.aborted) return;
    this.#unsubscribe = this.options.socket.subscribe(sessionId, (change) => this.#hear(change));
  }

  #hear(change: ConversationChange): void {
    const state = this.thread.current;
    if (change.type === "path") {
      if (state.choosing || change.tip === tipOf(state)) return;
      // Ask first if the user reads an older part.
      if (state.hasNewer) this.thread.showProblem(MOVED);
      else void this.refresh();
    } else if ((change.type === "missed" || change.turnId !== this.#turnId) && !state.sending) {
      void this.refresh();
    }
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
