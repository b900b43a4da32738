/** Changes within this time are loaded together. */
const TOGETHER_MS = 150;

/** Does it at once, and once more for all calls shortly after; nothing more once the signal is aborted. */
export function coalesced(refresh: () => Promise<void>, signal: AbortSignal): () => void {
  let isPausing = false;
  let again = false;
  const run = () => {
    if (signal.aborted) return;
    again = false;
    isPausing = true;
    void refresh();
    setTimeout(() => {
      isPausing = false;
      if (again) run();
    }, TOGETHER_MS);
  };
  return () => {
    if (isPausing) again = true;
    else run();
  };
}
