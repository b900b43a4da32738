const GAP = 4;
const EDGE = 8;

/** Places a popover below its button, or above if there is more room, and always on the screen. */
export function placePopover(shown: HTMLElement, button: Element, isCentred = false): void {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = shown;
  const isLeft = at.left + at.right < innerWidth;
  const left = isCentred ? (at.left + at.right - width) / 2 : isLeft ? at.left : at.right - width;
  const isBelow = at.bottom + GAP + height + EDGE <= innerHeight || at.top < innerHeight - at.bottom;
  const top = isBelow ? at.bottom + GAP : at.top - GAP - height;
  shown.style.left = `${Math.max(EDGE, Math.min(left, innerWidth - width - EDGE))}px`;
  shown.style.top = `${Math.max(EDGE, Math.min(top, innerHeight - height - EDGE))}px`;
}
