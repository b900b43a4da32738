/** Formulas; loaded when the first one is seen. */
import "katex/dist/katex.min.css";

import katex from "katex";
import remarkMath from "remark-math";

export const remark = remarkMath;

/** Draws a formula. Into an element, not as HTML: our policy forbids styles in markup. */
export function draw(formula: string, display: boolean, place: HTMLElement): void {
  try {
    katex.render(formula, place, {
      displayMode: display,
      throwOnError: true,
      strict: "ignore",
      trust: false,
      maxExpand: 200,
      maxSize: 20,
    });
  } catch {
    // A broken formula is shown as it was written.
    place.textContent = formula;
    place.classList.add("broken");
  }
}
