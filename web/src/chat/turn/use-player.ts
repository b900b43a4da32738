import { useEffect, useState } from "react";

/** Playback speeds; an instant one jumps to the end. */
export const SPEEDS = [1, 2, 4, 8, Infinity];
/** The maximum update rate: each update renders a page of Markdown. */
const FRAME_MS = 33;

/** Plays a timeline. It starts at the end, where everything is visible, or plays from a given position. */
export function usePlayer(duration: number, from: number | null) {
  const [position, setPosition] = useState(from ?? duration);
  const [speed, setSpeed] = useState(1);
  const [isPlaying, setPlaying] = useState(from !== null);
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
