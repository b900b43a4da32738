import { requestProblemOf, type RunningTurnView, type WorkerView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";

import { api } from "../api/api";
import { agents, listedAgentName } from "../state/agents";
import { confirmed } from "../state/confirmation";
import { describeProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useWords } from "../words";
import { useRunningWords, type RunningWords } from "../words/running";
import { age, began } from "./age";

interface Props {
  turns: readonly RunningTurnView[];
  workers: readonly WorkerView[];
  /** When they were so. */
  at: number;
  onStopped: () => void;
}

/** The turns of all users, the oldest first. */
export function TurnsTable({ turns, workers, at, onStopped }: Props) {
  const runningWords = useRunningWords();
  if (!turns.length) return <p className="hint">{runningWords.noTurns}</p>;
  const columns = [runningWords.agent, runningWords.state, runningWords.step, runningWords.worker, runningWords.user, runningWords.began];
  return (
    <div className="table" tabIndex={0} role="region" aria-labelledby="running-turns">
      <table aria-labelledby="running-turns">
        <thead>
          <tr>
            {columns.map((it) => (
              <th key={it} scope="col">
                {it}
              </th>
            ))}
            <th scope="col">
              <span className="unseen">{runningWords.stop}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {turns.map((turn) => (
            <Row key={turn.id} turn={turn} worker={workers.find((it) => it.id === turn.worker)} at={at} onStopped={onStopped} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ turn, worker, at, onStopped }: { turn: RunningTurnView; worker: WorkerView | undefined; at: number; onStopped: () => void }) {
  const words = useWords();
  const runningWords = useRunningWords();
  const name = listedAgentName(useStore(agents), turn.agentId, turn.agent ?? words.deletedAgent);
  const stop = async () => {
    const question = { title: runningWords.stopNamed(name, turn.userId), text: runningWords.stopSure, action: runningWords.stop };
    if (!(await confirmed(question))) return;
    try {
      await api.send("POST", `/api/admin/turns/${turn.id}/abort`);
      toast(runningWords.stopped);
    } catch (error) {
      toast(describeProblem(words, requestProblemOf(error)));
    }
    onStopped();
  };
  return (
    <tr>
      <th scope="row">
        <span dir="auto">{name}</span>
        {turn.agent && (
          <small>
            <code>{turn.agent}</code>
            {turn.codeVersion != null && ` ${runningWords.version(String(turn.codeVersion))}`}
          </small>
        )}
      </th>
      <td data-state={turn.state} data-waits={turn.waitsFor}>
        {stateOf(turn, runningWords)}
      </td>
      <td>
        {turn.step ? <code>{turn.step}</code> : "–"}
        {turn.stepSince && <small>{runningWords.since(age(at - Date.parse(turn.stepSince), words.locale))}</small>}
      </td>
      <td>
        {worker?.name || turn.worker?.slice(-8) || "–"}
        {turn.nodeId && <small title={turn.nodeId}>{turn.nodeId.slice(-8)}</small>}
      </td>
      <td dir="auto">{turn.userId}</td>
      <td>{began(turn.startedAt, words.locale, at, runningWords.ago)}</td>
      <td>
        <button type="button" className="danger" onClick={() => void stop()} aria-label={runningWords.stopNamed(name, turn.userId)}>
          {runningWords.stop}
        </button>
      </td>
    </tr>
  );
}

function stateOf({ state, waitsFor }: RunningTurnView, runningWords: RunningWords): string {
  if (state === "waiting") return waitsFor ? runningWords.waitsFor[waitsFor] : runningWords.states.running;
  return runningWords.states[state];
}
