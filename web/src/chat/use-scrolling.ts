import { isLocalId, keyOf, type Thread, type ThreadState } from "@threadkeep/client";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** How many entries are rendered at most; the others return when the user scrolls to them. */
const MOST_SHOWN = 100;
/** How many are rendered first: more than any screen shows. */
const FIRST_SHOWN = 12;
/** How many are added at a time: not so many that a frame is late. */
const STEP = 2;
/** As many beyond those in view are rendered when the page has time, and read from the server. */
const AHEAD = 40;
const PAUSE_MS = 120;
/** Nearer to the end of what is rendered, more is added with every frame. */
const NEAR_PX = 1200;
const AT_END_PX = 60;
/** Where to place the entry that the user opened. */
const WANTED_PX = 60;

/** What is at the top of the view, and how far below its edge; `part` is -1 for the entry itself. */
interface Anchor {
  key: string;
  part: number;
  top: number;
}

function partsOf(entry: HTMLElement): HTMLElement[] {
  return [...entry.querySelectorAll<HTMLElement>(".part")];
}

function topOf(element: HTMLElement): number {
  return element.getBoundingClientRect().top;
}

/** Keeps the newest in view while the user reads at the end, and their place while they read elsewhere. */
export function useScrolling(
  thread: Thread,
  { messages, queued, hasOlder, hasNewer }: ThreadState,
  /** The key of the entry that the user opened. */
  wanted: string | undefined,
) {
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const pinned = useRef(true);
  const lastTop = useRef(0);
  /** Where the view was put to keep the user's place: the event for that isn't their decision. */
  const restoredTop = useRef(-1);
  /** The keys of the first and the last rendered entry; null for the newest. */
  const [shownKeys, setShownKeys] = useState<{ first: string | null; last: string | null }>({ first: null, last: null });
  const keyAt = (index: number) => (messages[index] ? keyOf(messages[index]) : null);
  const indexOf = (key: string | null) => (key === null ? -1 : messages.findLastIndex((it) => keyOf(it) === key));
  const last = indexOf(shownKeys.last);
  const end = last < 0 ? messages.length : last + 1;
  const first = indexOf(shownKeys.first);
  const start = Math.max(0, first < 0 || first >= end ? end - FIRST_SHOWN : first, end - MOST_SHOWN);
  const shown = messages.slice(start, end);
  /** Renders these entries; if the last of all is among them, newer ones too. */
  const show = (from: number, to: number) =>
    setShownKeys({ first: keyAt(Math.max(from, 0)), last: to < messages.length ? keyAt(to - 1) : null });

  // What was at the top before a change stays where it was: an entry, or a part of a reply that may grow above it.
  const anchor = useRef<Anchor | null>(null);
  const remember = useCallback(() => {
    const box = scroller.current;
    if (!box) return;
    const edge = topOf(box);
    const isInView = (it: HTMLElement) => it.getBoundingClientRect().bottom > edge;
    const entry = [...box.querySelectorAll<HTMLElement>("[data-key]")].find(isInView);
    if (!entry) return void (anchor.current = null);
    const part = partsOf(entry).findIndex(isInView);
    anchor.current = { key: entry.dataset["key"]!, part, top: topOf(partsOf(entry)[part] ?? entry) - edge };
  }, []);
  const restore = () => {
    const box = scroller.current;
    if (!box || pinned.current || !anchor.current) return null;
    const { key, part, top } = anchor.current;
    const entry = box.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
    const moved = entry ? topOf(partsOf(entry)[part] ?? entry) - topOf(box) - top : 0;
    if (Math.abs(moved) < 1) return entry; // it takes whole pixels
    box.scrollTop += moved;
    restoredTop.current = box.scrollTop;
    return entry;
  };
  const firstKey = keyAt(start);
  const lastKey = keyAt(end - 1);
  /** Whether the opened entry, once it is rendered, is to have the focus. */
  const isArriving = useRef(false);
  const isEndInView = () => {
    const box = scroller.current;
    return box !== null && end === messages.length && !hasNewer && box.scrollHeight - box.scrollTop - box.clientHeight < 1;
  };
  const place = () => {
    const entry = restore();
    if (!pinned.current) setAtEnd(isEndInView()); // where all fits, nothing scrolls: no event would say so
    if (!entry || !isArriving.current) return;
    isArriving.current = false;
    entry.focus({ preventScroll: true });
  };
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- when other entries are rendered
  useLayoutEffect(place, [firstKey, lastKey]);

  /** Renders some more where few are left beyond the view; whether it did. `isHurried`: only where hardly any are. */
  const addSome = (isHurried: boolean): boolean => {
    const box = scroller.current;
    if (!box || (!isHurried && shown.length + STEP > MOST_SHOWN)) return false;
    const isFew = (pixels: number, entries: number) => (isHurried ? pixels < NEAR_PX : entries < AHEAD);
    const seen = anchor.current && !pinned.current ? indexOf(anchor.current.key) : end;
    if (start > 0 && isFew(box.scrollTop, seen - start)) {
      const from = Math.max(start - STEP, 0);
      show(from, Math.min(end, from + MOST_SHOWN));
    } else if (end < messages.length && isFew(box.scrollHeight - box.scrollTop - box.clientHeight, end - seen)) {
      show(Math.max(start, end + STEP - MOST_SHOWN), end + STEP);
    } else return false;
    return true;
  };
  // In steps: those that the user is about to see with the next frame, the others when nobody scrolls.
  const latest = useRef({ addSome, place });
  useLayoutEffect(() => {
    latest.current = { addSome, place };
  });
  const pausing = useRef<ReturnType<typeof setTimeout>>(undefined);
  const fill = useCallback(() => {
    clearTimeout(pausing.current);
    if (!latest.current.addSome(true)) pausing.current = setTimeout(() => latest.current.addSome(false), PAUSE_MS);
  }, []);
  useEffect(() => {
    const frame = requestAnimationFrame(fill);
    return () => cancelAnimationFrame(frame);
  }, [fill, firstKey, lastKey, messages.length]);
  useEffect(() => () => clearTimeout(pausing.current), []);

  useLayoutEffect(() => {
    const at = messages.findIndex((it) => keyOf(it) === wanted);
    if (at < 0 || !wanted) return;
    pinned.current = false;
    anchor.current = { key: wanted, part: -1, top: WANTED_PX };
    isArriving.current = true;
    show(at - FIRST_SHOWN, at + FIRST_SHOWN);
    place();
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- goes to a message once, when it is asked for
  }, [wanted]);

  useEffect(() => {
    const box = scroller.current;
    if (!box?.firstElementChild) return;
    const follow = () => {
      if (!pinned.current) return latest.current.place();
      box.scrollTop = box.scrollHeight;
      lastTop.current = box.scrollTop; // less than before where something was folded away: no user has scrolled up
    };
    const growing = new ResizeObserver(follow);
    growing.observe(box.firstElementChild);
    growing.observe(box);
    return () => growing.disconnect();
  }, []);

  const onScroll = () => {
    const box = scroller.current;
    if (!box) return;
    const rest = box.scrollHeight - box.scrollTop - box.clientHeight;
    // A reply may grow before the event for our own scrolling arrives: only a user scrolls up, be it a little.
    const isUp = box.scrollTop < lastTop.current - 1;
    const isOurs = box.scrollTop === restoredTop.current;
    lastTop.current = box.scrollTop;
    restoredTop.current = -1;
    const isFollowing = isUp ? rest < 1 : pinned.current || (rest < AT_END_PX && !isOurs);
    pinned.current = isFollowing && end === messages.length && !hasNewer;
    setAtEnd(pinned.current || isEndInView());
    remember();
    fill();
    if (start < AHEAD && box.scrollTop < box.clientHeight * 4 && hasOlder) void thread.reading.readOlder();
    else if (end === messages.length && rest < NEAR_PX && hasNewer) void thread.reading.readNewer();
  };
  /** For those who ask for it by a button. */
  const earlier = () => {
    remember();
    if (start > 0) show(start - FIRST_SHOWN, end);
    else void thread.reading.readOlder();
  };
  const toEnd = async () => {
    await thread.reading.showLatest();
    pinned.current = true;
    setShownKeys({ first: null, last: null });
    setAtEnd(true);
    requestAnimationFrame(() => scroller.current?.scrollTo({ top: scroller.current.scrollHeight }));
  };
  /** Keeps everything above in place while another branch is shown below, and the focused element, too. */
  const hold = async (change: Promise<void>) => {
    pinned.current = false;
    remember();
    await change;
    requestAnimationFrame(() => {
      if (scroller.current?.contains(document.activeElement)) document.activeElement!.scrollIntoView({ block: "nearest" });
      scroller.current?.dispatchEvent(new Event("scroll"));
    });
  };
  // Show what the user has just sent; a turn that starts by itself must not move a reader.
  const newest = messages.at(-1);
  const sent = newest && isLocalId(newest.id) ? newest.createdAt : queued.findLast((it) => isLocalId(it.messageId))?.messageId;
  useEffect(() => {
    if (sent) void toEnd();
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once for each message that is sent
  }, [sent]);
  return { scroller, shown, isAtEnd, onScroll, earlier, toEnd, hold };
}
