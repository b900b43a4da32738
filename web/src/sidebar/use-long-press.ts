import { useRef, type MouseEvent, type PointerEvent } from "react";

/** Before the browser itself does something with a link that is pressed for long. */
const LONG_MS = 400;

/** Calls `run` when a finger stays on an element; a finger that scrolls doesn't. */
export function useLongPress(run: () => void) {
  const waiting = useRef<ReturnType<typeof setTimeout>>(undefined);
  const end = () => clearTimeout(waiting.current);
  return {
    onPointerDown: ({ pointerType }: PointerEvent) => {
      if (pointerType === "touch") waiting.current = setTimeout(run, LONG_MS);
    },
    onPointerUp: end,
    onPointerCancel: end,
    onContextMenu: (event: MouseEvent) => {
      if ((event.nativeEvent as globalThis.PointerEvent).pointerType === "touch") event.preventDefault();
    },
  };
}
