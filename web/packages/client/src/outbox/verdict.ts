/** What a failed attempt means for an entry. Pure. */

export type Failure =
  /** No answer came, or somebody else's. */
  | { kind: "unreachable" }
  | { kind: "refused"; status: number; code: string; retryAfterMs: number | null };

export type Verdict =
  /** It stays, and is tried again; not before this time has passed. */
  | { kind: "again"; afterMs: number }
  /** It stays until its user has signed in. */
  | { kind: "signed-out" }
  /** It will never be accepted. */
  | { kind: "final" };

/** Times between attempts; the last one from then on. */
const PAUSES_MS = [1000, 2000, 4000, 8000, 15_000, 30_000, 60_000];

/** Refusals that pass: too early, too many, too slow. */
const PASSING = new Set([408, 425, 429]);

/** Answers of a broken server that no later attempt would change. */
const LASTING = new Set(["GATEWAY_NOT_CONFIGURED"]);

/** Whoever answered without a code is a proxy, or a page of a network that wants a sign-in; only this it knows well. */
const TOO_LARGE = 413;
export const NO_CODE = "INTERNAL_ERROR";

export function verdictOn(failure: Failure, attempts: number): Verdict {
  const pause = PAUSES_MS[Math.min(attempts, PAUSES_MS.length) - 1] ?? PAUSES_MS[0]!;
  if (failure.kind === "unreachable") return { kind: "again", afterMs: pause };
  const { status, code, retryAfterMs } = failure;
  if (status === 401) return { kind: "signed-out" };
  const isForeign = code === NO_CODE && status !== TOO_LARGE;
  const passes = isForeign || PASSING.has(status) || (status >= 500 && !LASTING.has(code));
  return passes ? { kind: "again", afterMs: Math.max(pause, retryAfterMs ?? 0) } : { kind: "final" };
}
