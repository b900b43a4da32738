import { isLocalId, keyOf, type Thread, type ThreadState } from "@threadkeep/client";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** How many entries are rendered at most; the others return when the user scrolls to them. */
const MOST_SHOWN = 100;
const STEP = 50;
const NEAR_PX = 400;
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
  /** The key of the last rendered entry; null for the newest. */
  const [lastKey, setLastKey] = useState<string | null>(null);
  const keyAt = (index: number) => (messages[index] ? keyOf(messages[index]) : null);
  /** Renders that many entries; if that is all of them, newer ones too. */
  const drawUpTo = (count: number) => setLastKey(count < messages.length ? keyAt(count - 1) : null);
  const found = lastKey === null ? -1 : messages.findIndex((it) => keyOf(it) === lastKey);
  const end = found < 0 ? messages.length : found + 1;
  const start = Math.max(0, end - MOST_SHOWN);
  const shown = messages.slice(start, end);

  // What was at the top before a change stays where it was: an entry, or a part of a reply that may grow above it.
  const anchor = useRef<Anchor | null>(null);
  const remember = useCallback(() => {
    const box = scroller.current;
    if (!box) return;
    const isInView = (it: HTMLElement) => it.offsetTop + it.offsetHeight > box.scrollTop;
    const entry = [...box.querySelectorAll<HTMLElement>("[data-key]")].find(isInView);
    if (!entry) return void (anchor.current = null);
    const part = partsOf(entry).findIndex(isInView);
    const top = (partsOf(entry)[part] ?? entry).offsetTop - box.scrollTop;
    anchor.current = { key: entry.dataset["key"]!, part, top };
  }, []);
  const restore = () => {
    const box = scroller.current;
    if (!box || pinned.current || !anchor.current) return null;
    const { key, part, top } = anchor.current;
    const entry = box.querySelector<HTMLElement>(`[data-key="${CSS.escape(key)}"]`);
    if (entry) box.scrollTop = (partsOf(entry)[part] ?? entry).offsetTop - top;
    return entry;
  };
  const firstKey = keyAt(start);
  useLayoutEffect(() => void restore(), [firstKey, lastKey]);

  useLayoutEffect(() => {
    const at = messages.findIndex((it) => keyOf(it) === wanted);
    if (at < 0 || !wanted) return;
    pinned.current = false;
    setAtEnd(false);
    anchor.current = { key: wanted, part: -1, top: WANTED_PX };
    setLastKey(keyAt(at + STEP));
    restore()?.focus({ preventScroll: true });
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- goes to a message once, when it is asked for
  }, [wanted]);

  useEffect(() => {
    const box = scroller.current;
    if (!box?.firstElementChild) return;
    const follow = () => {
      if (!pinned.current) return void restore();
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
    lastTop.current = box.scrollTop;
    const isFollowing = isUp ? rest < 1 : pinned.current || rest < AT_END_PX;
    pinned.current = isFollowing && end === messages.length && !hasNewer;
    setAtEnd(pinned.current);
    remember();
    if (box.scrollTop < NEAR_PX) {
      earlier();
    } else if (rest < NEAR_PX && end < messages.length) {
      drawUpTo(end + STEP);
    } else if (rest < NEAR_PX && hasNewer) {
      void thread.reading.readNewer();
    }
  };
  const earlier = () => {
    remember();
    if (start > 0) {
      drawUpTo(Math.max(end - STEP, MOST_SHOWN));
    } else if (hasOlder) {
      // Entries above need room: those far below are no longer rendered.
      drawUpTo(Math.min(end, MOST_SHOWN - STEP));
      void thread.reading.readOlder();
    }
  };
  const toEnd = async () => {
    await thread.reading.showLatest();
    pinned.current = true;
    setLastKey(null);
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
