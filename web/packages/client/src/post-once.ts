import { freshKey, type ApiClient } from "./api-client.ts";
import { ApiError, Unreachable } from "./errors.ts";

const TRIES = 4;
/** A server that shuts down restarts, or another takes its place, within a minute. */
const TRIES_IN_A_DEPLOY = 12;

export interface PostOnceOptions {
  /** The `Idempotency-Key`; a fresh one if missing. */
  key?: string;
  signal?: AbortSignal;
  onLost?: () => void;
}

/** Posts with a key and repeats the request if its response is lost: it takes effect once. */
export async function postOnce<T>(
  api: ApiClient,
  path: string,
  body?: object,
  { key = freshKey(), signal, onLost }: PostOnceOptions = {},
): Promise<T> {
  let tries = TRIES;
  for (let attempt = 1; ; attempt++) {
    try {
      return await api.send<T>("POST", path, body, { "Idempotency-Key": key });
    } catch (error) {
      const shutsDown = error instanceof ApiError && error.code === "SHUTTING_DOWN";
      if (shutsDown) tries = TRIES_IN_A_DEPLOY;
      if (!(shutsDown || error instanceof Unreachable) || attempt >= tries || signal?.aborted) throw error;
      onLost?.();
      await api.pause(Math.min(attempt, 5) * 1000, signal);
    }
  }
}
