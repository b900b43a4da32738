import { useEffect, useState } from "react";

/** How many times faster than it was; an instant one is at its end at once. */
export const SPEEDS = [1, 2, 4, 8, Infinity];
/** So often at most: what is drawn meanwhile is a page of Markdown. */
const FRAME_MS = 33;

/** Moves along a line of time. It begins at its end, where everything is to be seen, and never by itself. */
export function usePlayer(duration: number) {
  const [position, setPosition] = useState(duration);
  const [speed, setSpeed] = useState(1);
  const [isPlaying, setPlaying] = useState(false);
  const isAtEnd = position >= duration;
  useEffect(() => {
    if (!isPlaying) return;
    let frame = 0;
    let last = performance.now();
    const tick = (now: number) => {
      frame = requestAnimationFrame(tick);
      const passed = now - last;
      if (passed < FRAME_MS) return;
      last = now;
      setPosition((it) => Math.min(duration, speed === Infinity ? duration : it + passed * speed));
    };
    frame = requestAnimationFrame(tick);
    return () => cancelAnimationFrame(frame);
  }, [isPlaying, speed, duration]);
  useEffect(() => {
    if (isPlaying && isAtEnd) setPlaying(false);
  }, [isPlaying, isAtEnd]);
  const seek = (to: number) => setPosition(Math.max(0, Math.min(duration, to)));
  const toggle = () => {
    if (!isPlaying && isAtEnd) setPosition(0);
    setPlaying(!isPlaying);
  };
  return { position, seek, speed, setSpeed, isPlaying, toggle, isAtEnd };
}
