import { freshKey, type ApiClient } from "./api-client.ts";
import { ApiError, Unreachable } from "./errors.ts";

const TRIES = 4;
/** A server that shuts down restarts, or another takes its place, within a minute. */
const TRIES_IN_A_DEPLOY = 12;

interface RepeatOptions {
  signal?: AbortSignal;
  onLost?: () => void;
}

export interface PostOnceOptions extends RepeatOptions {
  /** The `Idempotency-Key`; a fresh one if missing. */
  key?: string;
}

/** Posts with a key and repeats the request if its response is lost: it takes effect once. */
export function postOnce<T>(api: ApiClient, path: string, body?: object, { key = freshKey(), ...options }: PostOnceOptions = {}): Promise<T> {
  return repeated(api, () => api.send<T>("POST", path, body, { "Idempotency-Key": key }), options);
}

/** Sends a request again while the server can't be reached, a few times. */
export async function repeated<T>(api: ApiClient, send: () => Promise<T>, { signal, onLost }: RepeatOptions = {}): Promise<T> {
  let tries = TRIES;
  for (let attempt = 1; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      const shutsDown = error instanceof ApiError && error.code === "SHUTTING_DOWN";
      if (shutsDown) tries = TRIES_IN_A_DEPLOY;
      if (!(shutsDown || error instanceof Unreachable) || attempt >= tries || signal?.aborted) throw error;
      onLost?.();
      await api.pause(Math.min(attempt, 5) * 1000, signal);
    }
  }
}
