import "../../styles/drawer.css";
import "../../styles/requests.css";
import "../../styles/turn.css";

import { waitsForUser, type UsageView } from "@threadkeep/client";
import { Link, X } from "lucide-react";
import { useLayoutEffect, useMemo, useRef, useState, type RefObject } from "react";

import { takesCrash } from "../../state/crash-replay";
import { hrefOf } from "../../state/route";
import { modelCallsOf, unpricedModels } from "../../turn/model-calls";
import { replyBefore } from "../../turn/replay";
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
  const [fromCrash] = useState(() => takesCrash(turnId));
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
      {watched.state === "there" && <Story dialog={dialog} fromCrash={fromCrash} {...watched} />}
    </dialog>
  );
}

interface StoryProps extends WatchedTurn {
  dialog: RefObject<HTMLDialogElement | null>;
  fromCrash: boolean;
}

function Story({ dialog, fromCrash, turn, receipt, events, reply, isRunning }: StoryProps) {
  const words = useWords();
  const turnWords = useTurnWords();
  const timeline = useMemo(() => timelineOf(events), [events]);
  const before = useMemo(() => replyBefore(turn), [turn]);
  const calls = useMemo(() => modelCallsOf(events), [events]);
  const { usage, error } = turn;
  const model = reply.message.model ?? turn.model ?? null;
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
        <Fact name={words.model} value={model ?? "–"} />
        {usage && <Spent usage={usage} />}
        {turn.cost && <Fact name={words.cost} value={money(turn.cost, words.locale)} />}
        {usage && !turn.cost && !isRunning && <UnknownCost models={unpricedModels(calls, model)} />}
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
        <ReplayPlayer dialog={dialog} before={before} events={events} timeline={timeline} fromCrash={fromCrash} />
      ) : (
        <p className="hint about">{turnWords.noEvents}</p>
      )}
      <TurnTools parts={reply.message.parts} progress={reply.progress} />
      <TurnTokens calls={calls} usage={usage} cost={turn.cost} />
      {receipt && (
        <>
          <h3>{turnWords.context}</h3>
          <Receipt receipt={receipt} conversationId={turn.conversationId} usage={usage} />
        </>
      )}
    </>
  );
}

/** Left out, it would look as if nothing had to be paid. */
function UnknownCost({ models }: { models: readonly string[] }) {
  const words = useWords();
  const turnWords = useTurnWords();
  const named = new Intl.ListFormat(words.locale).format(models);
  return <Fact name={words.cost} value={turnWords.costNotKnown} note={named && turnWords.noPriceFor(named)} />;
}

/** Tokens; cached ones only if there are any, as not every provider has a cache. */
function Spent({ usage }: { usage: UsageView }) {
  const { locale, estimated, ...words } = useWords();
  const turnWords = useTurnWords();
  const counted = (count: number) => ({ value: count.toLocaleString(locale), note: usage.estimated ? estimated : undefined });
  return (
    <>
      <Fact name={words.inputTokens} {...counted(usage.inputTokens)} />
      <Fact name={words.outputTokens} {...counted(usage.outputTokens)} />
      {usage.cacheReadTokens > 0 && <Fact name={turnWords.cacheReadTokens} {...counted(usage.cacheReadTokens)} />}
      {usage.cacheWriteTokens > 0 && <Fact name={turnWords.cacheWriteTokens} {...counted(usage.cacheWriteTokens)} />}
    </>
  );
}
