import { type MeView, type PageView_RunningTurnView, type RunningTurnView, type WorkerView, type WorkersView } from "@threadkeep/client";
import { useCallback, useEffect, useState } from "react";

import { api } from "../api/api";
import { useLoaded } from "../api/use-loaded";
import { TopBar } from "../chat/top-bar";
import { Field } from "../ui/field";
import { describeProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { grouped } from "../words/format";
import { useRunningWords } from "../words/running";
import { TurnsTable } from "./turns-table";
import { WorkersTable } from "./workers-table";

const LOOK_EVERY_MS = 3000;
const MOST_SHOWN = 200;
const FILTERS = ["all", "nothing", "worker", "person"] as const;
type Filter = (typeof FILTERS)[number];

interface Seen {
  turns: readonly RunningTurnView[];
  hasMore: boolean;
  workers: readonly WorkerView[];
  at: number;
}

/** What runs or waits, and the processes that run agents in code; for operators. */
export function RunningPage({ me, onMenu }: { me: MeView; onMenu: () => void }) {
  const runningWords = useRunningWords();
  return (
    <div className="page">
      <TopBar title={runningWords.title} onMenu={onMenu} />
      <div className="content running">{me.role === "admin" ? <Running /> : <p className="hint">{runningWords.notAdmin}</p>}</div>
    </div>
  );
}

function Running() {
  const words = useWords();
  const runningWords = useRunningWords();
  const [filter, setFilter] = useState<Filter>("all");
  const read = useCallback(
    async (signal: AbortSignal): Promise<Seen> => {
      const query = { limit: String(MOST_SHOWN), ...(filter !== "all" && { waitsFor: filter }) };
      const [turns, workers] = await Promise.all([
        api.get<PageView_RunningTurnView>("/api/admin/turns", query, signal),
        api.get<WorkersView>("/api/admin/workers", {}, signal),
      ]);
      return { turns: turns.items, hasMore: turns.nextCursor !== null, workers: workers.items, at: Date.now() };
    },
    [filter],
  );
  const { loaded, again } = useLoaded(read);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || void again(), LOOK_EVERY_MS);
    return () => clearInterval(timer);
  }, [again]);
  return (
    <>
      <p className="hint">{runningWords.intro}</p>
      <Field label={runningWords.shown}>
        <select value={filter} onChange={(event) => setFilter(event.target.value as Filter)}>
          {FILTERS.map((it) => (
            <option key={it} value={it}>
              {runningWords.filters[it]}
            </option>
          ))}
        </select>
      </Field>
      {loaded.state === "loading" && <p className="hint">{words.loading}</p>}
      {loaded.state === "failed" && (
        <p className="hint" role="alert">
          {describeProblem(words, loaded.problem)}{" "}
          <button type="button" className="link" onClick={() => void again()}>
            {words.retry}
          </button>
        </p>
      )}
      {loaded.state === "ready" && (
        <>
          <h2 id="running-turns">{runningWords.turns}</h2>
          <TurnsTable {...loaded.value} onStopped={() => void again()} />
          {loaded.value.hasMore && <p className="hint">{runningWords.oldestOnly(grouped(MOST_SHOWN))}</p>}
          <h2 id="running-workers">{runningWords.workers}</h2>
          <p className="hint">{loaded.value.workers.length ? runningWords.workersIntro : runningWords.noWorkers}</p>
          {loaded.value.workers.length > 0 && <WorkersTable {...loaded.value} />}
        </>
      )}
    </>
  );
}
