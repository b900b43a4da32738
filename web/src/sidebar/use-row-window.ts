import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** Rows this far beyond the view are mounted: a user who scrolls finds them there. */
const BEYOND_PX = 600;
/** Less than this mounts nothing new. */
const STEP_PX = 200;

/** Rows under a heading. All rows are equally high, and so are the headings. */
export interface RowGroup {
  members: readonly { id: string }[];
}

interface View {
  heading: number;
  row: number;
  top: number;
  height: number;
}

/** What is assumed until there is something to measure. */
const UNSEEN: View = { heading: 36, row: 34, top: 0, height: 800 };

/**
 * Mounts only the rows near the view: of each group, those from `from` on and before `to`. Keeps what the user sees in
 * place when rows above it come or go.
 */
export function useRowWindow(groups: readonly RowGroup[]) {
  const list = useRef<HTMLDivElement>(null);
  const [view, setView] = useState(UNSEEN);
  const look = useCallback(() => {
    const box = list.current!;
    const row = box.querySelector("li")?.offsetHeight;
    const heading = box.querySelector("h2")?.offsetHeight;
    if (!row || !heading) return; // there are none, or they are hidden
    const top = Math.floor(box.scrollTop / STEP_PX) * STEP_PX;
    const next = { heading, row, top, height: box.clientHeight };
    setView((it) => (isSame(it, next) ? it : next));
  }, []);
  useEffect(() => {
    const resized = new ResizeObserver(look);
    resized.observe(list.current!);
    return () => resized.disconnect();
  }, [look]);

  const { heading, row } = view;
  const before = useRef(new Map<string, number>());
  useLayoutEffect(() => {
    const box = list.current!;
    const tops = topsOf(groups, heading, row);
    const isSeen = (top: number) => top + row > box.scrollTop && top < box.scrollTop + box.clientHeight;
    // One of them may have moved elsewhere: the median is how far the others have moved.
    const moves = [...before.current].filter(([id, top]) => isSeen(top) && tops.has(id)).map(([id, top]) => tops.get(id)! - top);
    const moved = moves.sort((a, b) => a - b)[moves.length >> 1];
    if (moved && box.scrollTop > 0) box.scrollTop += moved;
    before.current = tops;
    look();
  }, [look, groups, heading, row]);
  /** Scrolls to a row that is out of sight; false if it isn't in the list. */
  const show = (id: string) => {
    const box = list.current!;
    const top = topsOf(groups, heading, row).get(id);
    if (top === undefined) return false;
    if (top < box.scrollTop) box.scrollTop = top - heading;
    else if (top + row > box.scrollTop + box.clientHeight) box.scrollTop = top + 2 * row - box.clientHeight;
    return true;
  };
  return { list, windows: rowsNear(groups, view), look, show };
}

function isSame(one: View, other: View): boolean {
  return one.heading === other.heading && one.row === other.row && one.top === other.top && one.height === other.height;
}

/** Where each row begins. */
function topsOf(groups: readonly RowGroup[], heading: number, row: number): Map<string, number> {
  const tops = new Map<string, number>();
  for (const [nth, { members }] of groups.entries())
    for (const { id } of members) tops.set(id, heading * (nth + 1) + row * tops.size);
  return tops;
}

function rowsNear(groups: readonly RowGroup[], { heading, row, top, height }: View) {
  let begin = 0;
  return groups.map(({ members }) => {
    begin += heading;
    const nth = (place: number) => Math.min(Math.max(Math.floor((place - begin) / row), 0), members.length);
    const near = { from: nth(top - BEYOND_PX), to: nth(top + STEP_PX + height + BEYOND_PX + row) };
    begin += row * members.length;
    return near;
  });
}
