import { type LiveReply, type TurnEvent } from "@threadkeep/client";
import { Pause, Play, RotateCcw } from "lucide-react";
import { useEffect, useMemo, useRef, type RefObject } from "react";

import { crashIn, nextStop, playedAt, positionOf, replayOf, Rewind, stepAt, stopAt, stopsOf, timeAt } from "../../turn/replay";
import { type Timeline } from "../../turn/timeline";
import { useWords } from "../../words";
import { duration } from "../../words/format";
import { useTurnWords } from "../../words/turn";
import { ReplayedReply } from "./replayed-reply";
import { TimelineView, titleOf } from "./timeline-view";
import { SPEEDS, usePlayer } from "./use-player";

/** The step of an arrow key, as a share of the whole. */
const KEY_SHARE = 1 / 20;

interface Props {
  /** Keys play and scrub wherever in it the focus is. */
  dialog: RefObject<HTMLDialogElement | null>;
  /** The reply before its first event. */
  before: LiveReply;
  events: readonly TurnEvent[];
  timeline: Timeline;
  /** What a replay without the event log is made from. */
  source?: string;
  /** Whether it plays at once, from where the server crashed. */
  fromCrash?: boolean;
}

/** Replays a turn: the growing reply, and the step at each moment. */
export function ReplayPlayer({ dialog, before, events, timeline, source, fromCrash = false }: Props) {
  const words = useWords();
  const turnWords = useTurnWords();
  const replay = useMemo(() => replayOf(events), [events]);
  const player = usePlayer(replay.duration, fromCrash ? crashIn(replay) : null);
  const { isPlaying, isAtEnd, speed, setSpeed } = player;
  const box = useRef<HTMLDivElement>(null);
  // The whole reply is the tallest: reserving its height keeps what is below in place.
  const keepHeight = () => {
    if (isAtEnd && box.current) box.current.style.minHeight = `${box.current.offsetHeight}px`;
  };
  const seek = (to: number) => {
    keepHeight();
    player.seek(to);
  };
  const toggle = () => {
    keepHeight();
    player.toggle();
  };
  const stops = useMemo(() => stopsOf(replay, timeline), [replay, timeline]);
  const rewind = useMemo(() => new Rewind(before, replay.events), [before, replay]);
  const position = isPlaying && prefersStillness() ? stopAt(stops, player.position) : player.position;
  const time = timeAt(replay, position);
  const played = playedAt(replay, position);
  const step = timeline.spans[stepAt(timeline, time)];
  const now = isAtEnd ? turnWords.ended : step ? titleOf(words, turnWords, step) : turnWords.beginning;

  const onKey = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || isForSomethingElse(event.target)) return;
    const isSlider = event.target instanceof HTMLInputElement;
    const by = replay.duration * KEY_SHARE;
    const moves: Record<string, () => void> = {
      " ": toggle,
      ArrowLeft: () => seek(position - by),
      ArrowRight: () => seek(position + by),
      // Elsewhere these keys scroll.
      ...(isSlider && {
        ArrowDown: () => seek(position - by),
        ArrowUp: () => seek(position + by),
        PageDown: () => seek(nextStop(stops, position, -1)),
        PageUp: () => seek(nextStop(stops, position, 1)),
      }),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  };
  const latest = useRef(onKey);
  useEffect(() => {
    latest.current = onKey;
  });
  useEffect(() => {
    const drawer = dialog.current;
    const listen = (event: KeyboardEvent) => latest.current(event);
    drawer?.addEventListener("keydown", listen);
    return () => drawer?.removeEventListener("keydown", listen);
  }, [dialog]);

  const [PlayIcon, playLabel] = isPlaying ? [Pause, turnWords.pause] : isAtEnd ? [RotateCcw, turnWords.playAgain] : [Play, turnWords.play];
  return (
    <section aria-label={turnWords.replay}>
      <h3>{turnWords.replay}</h3>
      <div className="player">
        <button type="button" className="primary icon" aria-label={playLabel} data-tip={`${playLabel} (${turnWords.playKeys})`} onClick={toggle}>
          <PlayIcon aria-hidden />
        </button>
        <input
          type="range"
          aria-label={turnWords.position}
          aria-valuetext={turnWords.positionText(duration(time), duration(timeline.duration), now)}
          min={0}
          max={Math.max(1, replay.duration)}
          step="any"
          value={position}
          onChange={(event) => seek(Number(event.target.value))}
        />
        <select aria-label={turnWords.speed} title={turnWords.speed} value={speed} onChange={(event) => setSpeed(Number(event.target.value))}>
          {SPEEDS.map((it) => (
            <option key={it} value={it}>
              {it === Infinity ? turnWords.instant : `${it}×`}
            </option>
          ))}
        </select>
      </div>
      <p className="moment">
        <span>{now}</span>
        <span>
          {duration(time)} / {duration(timeline.duration)}
        </span>
      </p>
      <ReplayedReply box={box} reply={rewind.at(played)} isRunning={!isAtEnd} />
      <p className="about replay-about">
        {replay.events[0]?.replayed && <span>{source ?? turnWords.madeFromReply}</span>}
        {replay.leftOut > 0 && <span>{turnWords.idleShortened(duration(replay.leftOut))}</span>}
        <span className="keys">{turnWords.playKeys}</span>
      </p>
      <h3>{turnWords.timeline}</h3>
      <TimelineView timeline={timeline} time={time} onSeek={(to) => seek(positionOf(replay, to))} />
    </section>
  );
}

/** Whether the user prefers reduced motion: then a replay goes from step to step. */
function prefersStillness(): boolean {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}

function isForSomethingElse(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return target.type !== "range";
  return target instanceof Element && target.matches("button, summary, select, textarea, a, [tabindex='0']");
}
