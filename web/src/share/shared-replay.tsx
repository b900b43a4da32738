import "../styles/drawer.css";
import "../styles/requests.css";
import "../styles/turn.css";

import { startReply, type Message, type SharedReplayView, type TurnEvent } from "@threadkeep/client";
import { X } from "lucide-react";
import { useCallback, useLayoutEffect, useMemo, useRef, type RefObject } from "react";

import { api } from "../api/api";
import { shareToken } from "../api/file-paths";
import { useLoaded } from "../api/use-loaded";
import { ReplayPlayer } from "../chat/turn/replay-player";
import { timelineOf } from "../turn/timeline";
import { IconButton } from "../ui/icon-button";
import { describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { useShareWords } from "../words/shares";

/** How a shared answer came about, made from what the share shows of it. */
export function SharedReplay({ message, onClose }: { message: Message; onClose: () => void }) {
  const words = useWords();
  const shareWords = useShareWords();
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const read = useCallback(
    (signal: AbortSignal) => api.get<SharedReplayView>(`/api/shares/${shareToken}/replays/${message.seq}`, {}, signal),
    [message.seq],
  );
  const { loaded } = useLoaded(read);
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // Not on a button: the playback keys work everywhere in the drawer.
    heading.current?.focus();
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      className="drawer"
      aria-labelledby="replay-title"
      onClose={(event) => event.target === dialog.current && !dialog.current.open && onClose()}
    >
      <header>
        <h2 id="replay-title" ref={heading} tabIndex={-1}>
          {shareWords.replayTitle}
        </h2>
        <IconButton icon={X} label={words.close} onClick={() => dialog.current?.close()} />
      </header>
      {loaded.state === "loading" && <p className="hint">{words.loading}</p>}
      {loaded.state === "failed" && (
        <p className="hint" role="alert">
          {describeProblem(words, loaded.problem)}
        </p>
      )}
      {loaded.state === "ready" && (
        <Player dialog={dialog} message={message} events={loaded.value.events as unknown as readonly TurnEvent[]} />
      )}
    </dialog>
  );
}

interface PlayerProps {
  dialog: RefObject<HTMLDialogElement | null>;
  message: Message;
  events: readonly TurnEvent[];
}

function Player({ dialog, message, events }: PlayerProps) {
  const shareWords = useShareWords();
  const before = useMemo(() => startReply({ ...message, status: "PENDING" }), [message]);
  const timeline = useMemo(() => timelineOf(events), [events]);
  return <ReplayPlayer dialog={dialog} before={before} events={events} timeline={timeline} source={shareWords.replayMade} />;
}
