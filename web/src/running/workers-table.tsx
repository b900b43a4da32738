import { type WorkerView } from "@threadkeep/client";

import { useWords } from "../words";
import { grouped } from "../words/format";
import { useRunningWords, type RunningWords } from "../words/running";
import { age, began } from "./age";

/** The processes that run agents in code, the oldest first. */
export function WorkersTable({ workers, at }: { workers: readonly WorkerView[]; at: number }) {
  const words = useWords();
  const runningWords = useRunningWords();
  const columns = [runningWords.worker, runningWords.agents, runningWords.running, runningWords.state, runningWords.connected];
  return (
    <div className="table" tabIndex={0} role="region" aria-labelledby="running-workers">
      <table aria-labelledby="running-workers">
        <thead>
          <tr>
            {columns.map((it) => (
              <th key={it} scope="col">
                {it}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {workers.map((worker) => (
            <tr key={worker.id}>
              <th scope="row">
                <span dir="auto">{worker.name || worker.id.slice(-8)}</span>
                <small title={worker.id}>
                  {worker.id.slice(-8)} · {worker.sdk}
                </small>
              </th>
              <td>
                <ul>
                  {worker.agents.map(({ key, version }) => (
                    <li key={key}>
                      <code>{key}</code> <small>{runningWords.version(String(version))}</small>
                    </li>
                  ))}
                </ul>
              </td>
              <td>{worker.capacity === null ? grouped(worker.running) : runningWords.ofCapacity(grouped(worker.running), grouped(worker.capacity))}</td>
              <td data-state={worker.blockedMs ? "stalled" : undefined}>{stateOf(worker, runningWords, words.locale)}</td>
              <td>{began(worker.connectedAt, words.locale, at, runningWords.ago)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function stateOf({ blockedMs, isDraining }: WorkerView, runningWords: RunningWords, locale: string): string {
  if (blockedMs) return runningWords.blocked(age(blockedMs, locale));
  return isDraining ? runningWords.workerStates.draining : runningWords.workerStates.ready;
}
