/** What the parts of a thread share: its state, the server, and whether it is shown. */

import { type ApiClient } from "../api-client.ts";
import { Unreachable, isAborted, problemOf, type Problem } from "../errors.ts";
import { postOnce } from "../post-once.ts";
import { Store } from "../store.ts";
import { reduce, type ThreadAction } from "./reduce.ts";
import { EMPTY_THREAD, type ThreadState } from "./state.ts";

/** How long to wait before the latest messages are asked for again. */
const REREAD_AFTER_MS = 2000;

export class ThreadContext {
  readonly state = new Store<ThreadState>(EMPTY_THREAD);
  #closing = new AbortController();

  constructor(
    readonly id: string,
    readonly api: ApiClient,
  ) {}

  /** Aborted when the thread is no longer shown. */
  get signal(): AbortSignal {
    return this.#closing.signal;
  }

  open(): void {
    if (this.signal.aborted) this.#closing = new AbortController();
  }

  close(): void {
    this.#closing.abort();
  }

  /** The path of the conversation in the API, or of something in it. */
  path(rest = ""): string {
    return `/api/conversations/${this.id}${rest}`;
  }

  get current(): ThreadState {
    return this.state.get();
  }

  dispatch(action: ThreadAction): void {
    this.state.update((state) => reduce(state, action));
  }

  showConnection(connection: ThreadState["connection"]): void {
    this.dispatch({ type: "connection", connection });
  }

  showProblem(problem: Problem): void {
    this.dispatch({ type: "failed", problem });
  }

  /** Posts to the conversation; repeated if the response is lost, it takes effect once. */
  async postOnce<T>(rest: string, body?: object): Promise<T> {
    return postOnce<T>(this.api, this.path(rest), body, { onLost: () => this.showConnection("lost"), signal: this.signal });
  }

  /** Shows what went wrong; if the server cannot be reached, waits and does it `again`, if it can be repeated. */
  async fail(error: unknown, again?: () => Promise<void>): Promise<void> {
    const { signal } = this;
    // A request from before it was left may end after it was joined again.
    if (signal.aborted || isAborted(error)) return;
    if (error instanceof Unreachable && again) {
      this.showConnection("lost");
      await this.api.pause(REREAD_AFTER_MS, signal);
      if (!this.signal.aborted) await again();
      return;
    }
    this.showProblem(problemOf(error));
  }
}
