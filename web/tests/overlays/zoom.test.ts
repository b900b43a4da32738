import { expect, it } from "vitest";

import { FITTED, dragged, zoomed } from "../../src/overlays/zoom";

const room = { stage: { x: 800, y: 600 }, image: { x: 800, y: 300 } };
const middle = { x: 0, y: 0 };

it("zooms between what fits and twelve times that", () => {
  expect(zoomed(FITTED, 0.5, middle, room)).toEqual(FITTED);
  expect(zoomed(FITTED, 100, middle, room).scale).toBe(12);
});

it("keeps what lies under the pointer where it is", () => {
  const { scale, x } = zoomed(FITTED, 2, { x: 100, y: 0 }, room);
  expect(x + 100 * scale).toBe(100);
});

it("lets no edge come into the stage, and moves nothing that fits", () => {
  const twice = zoomed(FITTED, 2, middle, room);
  expect(dragged(twice, { x: 9999, y: 50 }, room)).toEqual({ scale: 2, x: 400, y: 0 });
  expect(dragged(FITTED, { x: 10, y: 10 }, room)).toEqual(FITTED);
});
