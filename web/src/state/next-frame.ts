/** Calls `draw` with the next frame, or now if the page is hidden, since hidden pages have no frames. */
export function atNextFrame(draw: () => void): void {
  if (document.hidden) draw();
  else requestAnimationFrame(draw);
}
