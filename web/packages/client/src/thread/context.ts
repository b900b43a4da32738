/** What the parts of a thread share: its state, the server, and whether it is shown. */

import { freshKey, type ApiClient } from "../api-client";
import { ApiError, Unreachable, problemOf, type Problem } from "../errors";
import { Store } from "../store";
import { reduce, type ThreadAction } from "./reduce";
import { EMPTY_THREAD, type ThreadState } from "./state";

/** How long to wait before the latest messages are asked for again. */
const REREAD_AFTER_MS = 2000;

const TRIES = 4;
/** A server that shuts down restarts, or another takes its place, within a minute. */
const TRIES_IN_A_DEPLOY = 12;

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

  /** The conversation's path in the API, or that of something in it. */
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

  /** Posts with a key and repeats the request if its response is lost: it takes effect once. */
  async postOnce<T>(rest: string, body?: object): Promise<T> {
    const headers = { "Idempotency-Key": freshKey() };
    let tries = TRIES;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.api.send<T>("POST", this.path(rest), body, headers);
      } catch (error) {
        const shutsDown = error instanceof ApiError && error.code === "SHUTTING_DOWN";
        if (shutsDown) tries = TRIES_IN_A_DEPLOY;
        if (!(shutsDown || error instanceof Unreachable) || attempt >= tries) throw error;
        this.showConnection("lost");
        await this.api.pause(Math.min(attempt, 5) * 1000, this.signal);
      }
    }
  }

  /** Shows what went wrong; if the server cannot be reached, waits and does it `again`, if it can be repeated. */
  async fail(error: unknown, again?: () => Promise<void>): Promise<void> {
    const { signal } = this;
    if (signal.aborted) return;
    if (error instanceof Unreachable && again) {
      this.showConnection("lost");
      await this.api.pause(REREAD_AFTER_MS, signal);
      if (!this.signal.aborted) await again();
      return;
    }
    this.showProblem(problemOf(error));
  }
}
