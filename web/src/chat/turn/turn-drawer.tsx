import "../../styles/drawer.css";
import "../../styles/turn.css";

import { waitsForUser, type UsageView } from "@threadkeep/client";
import { Link, X } from "lucide-react";
import { useLayoutEffect, useMemo, useRef, type RefObject } from "react";

import { hrefOf } from "../../state/route";
import { modelCallsOf } from "../../turn/model-calls";
import { timelineOf } from "../../turn/timeline";
import { CopyButton } from "../../ui/copy-button";
import { Fact } from "../../ui/fact";
import { IconButton } from "../../ui/icon-button";
import { describeProblem } from "../../ui/problem-bar";
import { useWords } from "../../words";
import { dateTime, duration, money } from "../../words/format";
import { useTurnWords } from "../../words/turn";
import { Receipt } from "./receipt";
import { ReplayPlayer } from "./replay-player";
import { ReplayedReply } from "./replayed-reply";
import { TimelineView } from "./timeline-view";
import { TurnTokens } from "./turn-tokens";
import { TurnTools } from "./turn-tools";
import { useTurn, type WatchedTurn } from "./use-turn";

interface Props {
  conversationId: string;
  turnId: string;
  onClose: () => void;
}

/** What happened in a turn: watched while it runs, replayed afterwards; what the model was sent, what it cost. */
export function TurnDrawer({ conversationId, turnId, onClose }: Props) {
  const words = useWords();
  const turnWords = useTurnWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const watched = useTurn(conversationId, turnId);
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // Not on a button: the playback keys work everywhere in the drawer.
    heading.current?.focus();
    // When the user leaves by going back, the focus returns as well.
    return () => shown?.close();
  }, []);
  const link = new URL(hrefOf({ name: "conversation", id: conversationId, turnId }), location.href).href;
  return (
    <dialog
      ref={dialog}
      className="drawer"
      aria-labelledby="turn-details"
      onClose={(event) => event.target === dialog.current && !dialog.current.open && onClose()}
    >
      <header>
        <h2 id="turn-details" ref={heading} tabIndex={-1}>
          {turnWords.turnDetails}
        </h2>
        {watched.state === "there" && <CopyButton text={link} label={turnWords.copyLink} icon={Link} />}
        <IconButton icon={X} label={words.close} onClick={() => dialog.current?.close()} />
      </header>
      {watched.state === "loading" && <p className="hint">{words.loading}</p>}
      {watched.state === "missing" && (
        <p className="hint" role="alert">
          {turnWords.turnNotFound}
        </p>
      )}
      {watched.state === "failed" && (
        <p className="hint" role="alert">
          {describeProblem(words, watched.problem)}
        </p>
      )}
      {watched.state === "there" && <Story dialog={dialog} {...watched} />}
    </dialog>
  );
}

function Story({ dialog, turn, receipt, events, reply, isRunning }: WatchedTurn & { dialog: RefObject<HTMLDialogElement | null> }) {
  const words = useWords();
  const turnWords = useTurnWords();
  const timeline = useMemo(() => timelineOf(events), [events]);
  const { usage, error } = turn;
  // The loaded state of a running turn is outdated by now.
  const status = !isRunning ? turn.status : waitsForUser(reply.message.parts) ? "WAITING" : "RUNNING";
  return (
    <>
      <p className="turn-status" data-status={status}>
        {turnWords.turnStatus[status]}
      </p>
      <dl className="facts">
        <Fact name={turnWords.started} value={dateTime(turn.startedAt, words.locale)} />
        <Fact name={turnWords.duration} value={duration(timeline.duration)} />
        <Fact name={words.model} value={reply.message.model ?? turn.model ?? "–"} />
        {usage && <Spent usage={usage} />}
        {turn.cost && <Fact name={words.cost} value={money(turn.cost, words.locale)} />}
      </dl>
      {error && (
        <p className="ending" data-kind="failed">
          <code>{error.code}</code> {error.message}
        </p>
      )}
      {isRunning ? (
        <section aria-label={turnWords.live}>
          <h3>
            <i className="beat" aria-hidden /> {turnWords.live}
          </h3>
          <ReplayedReply reply={reply} isRunning />
          <p className="hint about">{turnWords.liveHint}</p>
          <h3>{turnWords.timeline}</h3>
          <TimelineView timeline={timeline} />
        </section>
      ) : events.length ? (
        <ReplayPlayer dialog={dialog} turn={turn} events={events} timeline={timeline} />
      ) : (
        <p className="hint about">{turnWords.noEvents}</p>
      )}
      <TurnTools parts={reply.message.parts} progress={reply.progress} />
      <TurnTokens calls={modelCallsOf(events)} usage={usage} cost={turn.cost} />
      {receipt && (
        <>
          <h3>{turnWords.context}</h3>
          <Receipt receipt={receipt} conversationId={turn.conversationId} usage={usage} />
        </>
      )}
    </>
  );
}

/** Tokens; cached ones only if there are any, as not every provider has a cache. */
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
