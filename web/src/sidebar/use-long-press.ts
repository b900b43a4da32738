import { useRef, type MouseEvent, type PointerEvent } from "react";

/** Before the browser itself does something with a link that is pressed for long. */
const LONG_MS = 450;
/** A finger never rests quite still; one that moves further scrolls, or goes elsewhere. */
const STILL_PX = 10;

interface Press {
  timer: ReturnType<typeof setTimeout>;
  x: number;
  y: number;
}

/** Calls `run` when a finger stays on an element; a finger that scrolls doesn't. */
export function useLongPress(run: () => void) {
  const press = useRef<Press>(null);
  /** Whether the finger that `run` was called for is about to click as well. */
  const isDone = useRef(false);
  const end = () => clearTimeout(press.current?.timer);
  return {
    onPointerDown: ({ pointerType, clientX: x, clientY: y }: PointerEvent) => {
      isDone.current = false;
      if (pointerType !== "touch") return;
      end();
      const timer = setTimeout(() => {
        isDone.current = true;
        run();
      }, LONG_MS);
      press.current = { timer, x, y };
    },
    onPointerMove: ({ clientX, clientY }: PointerEvent) => {
      const from = press.current;
      if (from && Math.hypot(clientX - from.x, clientY - from.y) > STILL_PX) end();
    },
    onPointerUp: end,
    onPointerCancel: end,
    onClickCapture: (event: MouseEvent) => {
      if (!isDone.current) return;
      isDone.current = false;
      event.preventDefault();
      event.stopPropagation();
    },
    onContextMenu: (event: MouseEvent) => {
      if ((event.nativeEvent as globalThis.PointerEvent).pointerType === "touch") event.preventDefault();
    },
  };
}
