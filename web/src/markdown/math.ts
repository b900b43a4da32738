/** Formulas; loaded when the first one is seen. */
import "katex/dist/katex.min.css";

import katex from "katex";
import remarkMath from "remark-math";

export const remark = remarkMath;

/** Draws a formula. Into an element, not as HTML: our policy forbids styles in markup. */
export function draw(formula: string, display: boolean, place: HTMLElement): void {
  katex.render(formula, place, {
    displayMode: display,
    throwOnError: false, // a broken formula is shown as it was written
    strict: "ignore",
    trust: false,
    maxExpand: 200,
    maxSize: 20,
  });
}
