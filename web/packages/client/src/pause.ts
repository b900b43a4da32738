/** Waits before a retry; resolves early when the signal is aborted. */
export type Pause = (ms: number, signal?: AbortSignal) => Promise<void>;

export const pause: Pause = (ms, signal) =>
  new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal?.addEventListener("abort", wake);
  });

/** The waits before a connection that stays open for long is opened again. */
export const RECONNECT_WAITS_MS = [500, 1000, 3000, 10_000, 30_000];

/** The wait after a number of failures in a row; the last one from then on. */
export function waitAfter(failures: number, waitsMs: readonly number[]): number {
  return waitsMs[Math.min(failures, waitsMs.length - 1)]!;
}
