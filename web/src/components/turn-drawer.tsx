import { X } from "lucide-react";
import { useCallback, useEffect, useRef } from "react";

import { get } from "../api/client";
import { type ReceiptView, type TurnView, type UsageView } from "../api/schema";
import { useLoaded } from "../state/use-loaded";
import { follow } from "../turn/follow";
import { type TurnEvent } from "../turn/events";
import { timelineOf } from "../turn/timeline";
import { useWords } from "../words";
import { dateTime, duration } from "../words/format";
import { Fact } from "./fact";
import { IconButton } from "./icon-button";
import { Receipt } from "./receipt";
import { TimelineView } from "./timeline-view";
import { toldProblem } from "./problem-bar";

interface TurnStory {
  turn: TurnView;
  receipt: ReceiptView;
  events: TurnEvent[];
}

async function readTurn(turnId: string, signal: AbortSignal): Promise<TurnStory> {
  const events: TurnEvent[] = [];
  const [turn, receipt] = await Promise.all([
    get<TurnView>(`/api/turns/${turnId}`, {}, signal),
    get<ReceiptView>(`/api/turns/${turnId}/context`, {}, signal),
    follow(turnId, { onEvents: (more) => events.push(...more), onLost: () => {}, onBack: () => {} }, signal),
  ]);
  return { turn, receipt, events };
}

/** What happened in a turn: its timeline, what the model was sent, what it cost. */
export function TurnDrawer({ turnId, onClose }: { turnId: string; onClose: () => void }) {
  const words = useWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const { loaded } = useLoaded(useCallback((signal: AbortSignal) => readTurn(turnId, signal), [turnId]));
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} className="drawer" aria-label={words.turnDetails} onClose={onClose}>
      <header>
        <h2>{words.turnDetails}</h2>
        <IconButton icon={X} label={words.close} onClick={() => dialog.current?.close()} />
      </header>
      {loaded.state === "loading" && <p className="hint">{words.loading}</p>}
      {loaded.state === "failed" && <p className="hint">{toldProblem(words, loaded.problem)}</p>}
      {loaded.state === "ready" && <Story {...loaded.value} />}
    </dialog>
  );
}

function Story({ turn, receipt, events }: TurnStory) {
  const words = useWords();
  const timeline = timelineOf(events);
  const { usage } = turn;
  return (
    <>
      <dl className="facts">
        <Fact name={words.started} value={dateTime(turn.startedAt, words.locale)} />
        <Fact name={words.duration} value={duration(timeline.duration)} />
        <Fact name={words.model} value={turn.model ?? "–"} />
        {usage && <Spent usage={usage} />}
      </dl>
      <h3>{words.timeline}</h3>
      <TimelineView timeline={timeline} />
      <h3>{words.context}</h3>
      <Receipt receipt={receipt} />
    </>
  );
}

/** Tokens; those of the provider's cache only where there are some, as not every provider has one. */
function Spent({ usage }: { usage: UsageView }) {
  const { locale, estimated, ...words } = useWords();
  const counted = (count: number) => count.toLocaleString(locale) + (usage.estimated ? ` (${estimated})` : "");
  return (
    <>
      <Fact name={words.inputTokens} value={counted(usage.inputTokens)} />
      <Fact name={words.outputTokens} value={counted(usage.outputTokens)} />
      {usage.cacheReadTokens > 0 && <Fact name={words.cacheReadTokens} value={counted(usage.cacheReadTokens)} />}
      {usage.cacheWriteTokens > 0 && <Fact name={words.cacheWriteTokens} value={counted(usage.cacheWriteTokens)} />}
    </>
  );
}
