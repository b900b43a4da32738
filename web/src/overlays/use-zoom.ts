import { useEffect, useRef, useState, type PointerEvent, type MouseEvent, type RefObject } from "react";

import { FITTED, dragged, zoomed, type Point, type Zoom } from "./zoom";

/** The zoom step of a key or a button. */
export const STEP = 1.5;
const DOUBLE_CLICK = 2.5;
const WHEEL = 0.0022;

/** Zoom and place of an image on a stage: wheel, pinch, drag and double click; `shown` names the image. */
export function useZoom(stage: RefObject<HTMLElement | null>, shown: string) {
  const [zoom, setZoom] = useState<Zoom>(FITTED);
  const pointers = useRef(new Map<number, Point>());
  useEffect(() => setZoom(FITTED), [shown]);

  const zoomBy = (factor: number, at: Point = { x: 0, y: 0 }) =>
    setZoom((now) => zoomed(now, factor, at, room(stage.current)));
  useEffect(() => {
    const element = stage.current!;
    // React's own listener can't prevent scrolling.
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      // A pinch on a touchpad has ctrlKey set and smaller steps.
      zoomBy(Math.exp(-event.deltaY * WHEEL * (event.ctrlKey ? 4 : 1)), fromCentre(element, event));
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- the stage stays, and `zoomBy` reads nothing that changes
  }, []);

  const onPointerDown = (event: PointerEvent<HTMLElement>) => {
    if (event.button !== 0) return;
    pointers.current.set(event.pointerId, fromCentre(event.currentTarget, event));
    if (zoom.scale > 1 || pointers.current.size > 1) event.currentTarget.setPointerCapture(event.pointerId);
  };
  const onPointerMove = (event: PointerEvent<HTMLElement>) => {
    const before = pointers.current.get(event.pointerId);
    if (!before) return;
    const now = fromCentre(event.currentTarget, event);
    const [other] = [...pointers.current].flatMap(([id, point]) => (id === event.pointerId ? [] : [point]));
    pointers.current.set(event.pointerId, now);
    if (other) zoomBy(distance(now, other) / Math.max(1, distance(before, other)), middle(now, other));
    else setZoom((it) => dragged(it, { x: now.x - before.x, y: now.y - before.y }, room(stage.current)));
  };
  const onPointerUp = (event: PointerEvent) => void pointers.current.delete(event.pointerId);
  const onDoubleClick = (event: MouseEvent<HTMLElement>) => {
    if (zoom.scale > 1) setZoom(FITTED);
    else zoomBy(DOUBLE_CLICK, fromCentre(event.currentTarget, event));
  };
  return {
    place: `translate(${zoom.x}px, ${zoom.y}px) scale(${zoom.scale})`,
    isZoomed: zoom.scale > 1,
    zoomBy,
    fit: () => setZoom(FITTED),
    onPointerDown,
    onPointerMove,
    onPointerUp,
    onPointerCancel: onPointerUp,
    onDoubleClick,
  };
}

function fromCentre(element: HTMLElement, { clientX, clientY }: { clientX: number; clientY: number }): Point {
  const { left, top, width, height } = element.getBoundingClientRect();
  return { x: clientX - left - width / 2, y: clientY - top - height / 2 };
}

/** The sizes of the stage and of the image in it before it is zoomed. */
function room(stage: HTMLElement | null) {
  const image = stage?.querySelector("img");
  return {
    stage: { x: stage?.clientWidth ?? 0, y: stage?.clientHeight ?? 0 },
    image: { x: image?.offsetWidth ?? 0, y: image?.offsetHeight ?? 0 },
  };
}

function distance(a: Point, b: Point): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}

function middle(a: Point, b: Point): Point {
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
}
