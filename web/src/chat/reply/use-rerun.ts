import { Batches, foldAll, requestProblemOf, rerunTurn, startReply, type LiveReply, type Message, type Problem, type RerunView, type TurnEvent } from "@threadkeep/client";
import { useEffect, useRef, useState } from "react";

import { api } from "../../api/api";

export type RerunState =
  | { state: "idle" }
  | { state: "running"; reply: LiveReply }
  | { state: "failed"; problem: Problem }
  | { state: "done"; result: RerunView };

/** Runs a reply's turn again; another run, or leaving, ends the one before. */
export function useRerun(message: Message) {
  const [shown, setShown] = useState<RerunState>({ state: "idle" });
  const running = useRef<AbortController>(null);
  const stop = () => {
    running.current?.abort();
    setShown({ state: "idle" });
  };
  useEffect(() => () => running.current?.abort(), []);
  const run = async (model: string) => {
    running.current?.abort();
    const own = (running.current = new AbortController());
    let reply = startReply({ ...message, model });
    setShown({ state: "running", reply });
    const batches = new Batches<TurnEvent>((events) => {
      reply = foldAll(reply, events);
      if (!own.signal.aborted) setShown({ state: "running", reply });
    });
    try {
      const result = await rerunTurn(api, message.turnId!, { model }, own.signal, (events) => batches.add(events));
      batches.flush();
      if (!own.signal.aborted) setShown({ state: "done", result });
    } catch (error) {
      if (!own.signal.aborted) setShown({ state: "failed", problem: requestProblemOf(error) });
    }
  };
  return { shown, run, stop };
}
