/** Writes into the browser's storage, which may be full: then what is written lasts as long as the page. Returns whether it was written. */
export function store(key: string, value: string): boolean {
  try {
    localStorage.setItem(key, value);
    return true;
  } catch {
    return false;
  }
}
