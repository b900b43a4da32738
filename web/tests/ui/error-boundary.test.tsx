import { expect, it, vi } from "vitest";

import { ErrorBoundary } from "../../src/ui/error-boundary";
import { draw } from "../draw";

function Broken(): never {
  throw new Error("cannot be drawn");
}

it("offers to load the page again when it cannot be drawn", () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  const drawn = draw(
    <ErrorBoundary>
      <Broken />
    </ErrorBoundary>,
  );
  expect(drawn.find("[role=alert] h1").textContent).toBe("Something went wrong on this page");
  expect(drawn.find("button").textContent).toBe("Reload");
});
