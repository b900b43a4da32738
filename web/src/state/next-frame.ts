/** Calls `draw` with the screen's next frame, or now if the page is not seen: then it has no frames. */
export function atNextFrame(draw: () => void): void {
  if (document.hidden) draw();
  else requestAnimationFrame(draw);
}
