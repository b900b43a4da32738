const LOOK_MS = 100;
const LOOKS = 50;

/** Leads to a request as soon as its conversation is shown. */
export function focusRequest(requestId: string, looks = LOOKS): void {
  const found = document.querySelector<HTMLElement>(`.messages [data-request="${CSS.escape(requestId)}"]`);
  if (found) found.focus();
  else if (looks) setTimeout(() => focusRequest(requestId, looks - 1), LOOK_MS);
}
