/** The position of a zoomed image. Points are pixels from the middle of the stage. Pure. */

export interface Point {
  x: number;
  y: number;
}

export interface Zoom extends Point {
  /** 1: the image fits the stage. */
  scale: number;
}

export interface Room {
  stage: Point;
  image: Point;
}

export const FITTED: Zoom = { scale: 1, x: 0, y: 0 };
const MOST = 12;

/** Zooms around a fixed point, as far as the edges allow. */
export function zoomed(zoom: Zoom, factor: number, at: Point, room: Room): Zoom {
  const scale = Math.min(MOST, Math.max(1, zoom.scale * factor));
  const by = scale / zoom.scale;
  return within({ scale, x: at.x - (at.x - zoom.x) * by, y: at.y - (at.y - zoom.y) * by }, room);
}

export function dragged(zoom: Zoom, by: Point, room: Room): Zoom {
  return within({ ...zoom, x: zoom.x + by.x, y: zoom.y + by.y }, room);
}

/** Keeps the image over the stage: no gap opens at an edge. */
function within({ scale, x, y }: Zoom, { stage, image }: Room): Zoom {
  const most = (side: "x" | "y") => Math.max(0, (image[side] * scale - stage[side]) / 2);
  const held = (value: number, limit: number) => Math.min(limit, Math.max(-limit, value)) || 0;
  return { scale, x: held(x, most("x")), y: held(y, most("y")) };
}
