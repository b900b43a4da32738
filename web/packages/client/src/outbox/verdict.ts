/** What a failed attempt means for an entry. Pure. */

import { ApiError, NO_CODE } from "../errors.ts";
import { waitAfter } from "../pause.ts";

export type Verdict =
  /** It stays, and the next attempt comes no earlier than this. */
  | { kind: "again"; afterMs: number }
  /** It stays until its user has signed in. */
  | { kind: "signed-out" }
  /** It will never be accepted. */
  | { kind: "final"; error: ApiError };

const WAITS_MS = [1000, 2000, 4000, 8000, 15_000, 30_000, 60_000];

/** Refusals that pass: too early, too many, too slow. */
const PASSING = new Set([408, 425, 429]);

/** 5xx of servers before 0.2 that no later attempt would change. */
const LASTING = new Set(["GATEWAY_NOT_CONFIGURED"]);

/** The one refusal that is final even from a proxy, which sends no code. */
const TOO_LARGE = 413;

/** `attempts`: how many have failed, with this one. */
export function verdictOn(error: unknown, attempts: number): Verdict {
  const wait = waitAfter(attempts - 1, WAITS_MS);
  if (!(error instanceof ApiError)) return { kind: "again", afterMs: wait };
  const { status, code, retryAfterMs } = error;
  if (status === 401) return { kind: "signed-out" };
  const isForeign = code === NO_CODE && status !== TOO_LARGE;
  const passes = isForeign || retryAfterMs !== null || PASSING.has(status) || (status >= 500 && !LASTING.has(code));
  return passes ? { kind: "again", afterMs: Math.max(wait, retryAfterMs ?? 0) } : { kind: "final", error };
}
