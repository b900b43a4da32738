/** What this browser keeps under a name. */

/** Other applications, and other servers of ours, may be mounted at other paths of the same host. */
export const COPIES = `threadkeep.copies.${new URL(".", document.baseURI).pathname}`;
/** Written under that name until all copies are deleted, also if the browser is closed meanwhile. */
export const DELETING = "deleting";

/** Writes into the browser's storage, which may be full: then what is written lasts as long as the page. Returns whether it was written. */
export function store(key: string, value: string): boolean {
  try {
    localStorage.setItem(key, value);
    return true;
  } catch {
    return false;
  }
}

/** Calls `read` now, and when another tab changes what is kept under a name, until the returned function is called. */
export function followKey(name: string, read: () => void): () => void {
  const closing = new AbortController();
  window.addEventListener("storage", ({ key }) => key === name && read(), { signal: closing.signal });
  read();
  return () => closing.abort();
}
