import { useCallback, useMemo } from "react";

import { get } from "../api/client";
import { type DayUsageView, type UsageReportView } from "../api/schema";
import { Chart } from "../chart/chart";
import { agentName, agents } from "../state/agents";
import { useStore } from "../state/store";
import { useLoaded } from "../state/use-loaded";
import { useWords, type Words } from "../words";
import { toldProblem } from "./problem-bar";
import { TopBar } from "./top-bar";

const readUsage = (signal: AbortSignal) => get<UsageReportView>("/api/usage", {}, signal);

export function UsagePage({ onMenu }: { onMenu: () => void }) {
  const words = useWords();
  const { loaded } = useLoaded(useCallback(readUsage, []));
  return (
    <div className="page">
      <TopBar title={words.usageTitle} subtitle={words.usageOf} onMenu={onMenu} />
      <div className="content">
        {loaded.state === "loading" && <p className="hint">{words.loading}</p>}
        {loaded.state === "failed" && <p className="hint">{toldProblem(words, loaded.problem)}</p>}
        {loaded.state === "ready" && (loaded.value.items.length ? <Usage days={loaded.value.items} /> : <p className="hint">{words.noUsage}</p>)}
      </div>
    </div>
  );
}

interface Column {
  name: string;
  of: (day: DayUsageView) => number;
}

function columnsOf(words: Words, days: readonly DayUsageView[]): Column[] {
  const cached = [
    { name: words.cacheReadTokens, of: (it: DayUsageView) => it.cacheReadTokens },
    { name: words.cacheWriteTokens, of: (it: DayUsageView) => it.cacheWriteTokens },
  ];
  return [
    { name: words.turns, of: (it) => it.turns },
    { name: words.inputTokens, of: (it) => it.inputTokens },
    // Not every provider has a cache.
    ...cached.filter(({ of }) => days.some(of)),
    { name: words.outputTokens, of: (it) => it.outputTokens },
  ];
}

function Usage({ days }: { days: readonly DayUsageView[] }) {
  const words = useWords();
  const all = useStore(agents);
  const plots = useMemo(() => {
    const dates = everyDay(days);
    const ids = [...new Set(days.map((it) => it.agentId))];
    const plot = (title: string, count: (day: DayUsageView) => number) => ({
      title,
      labels: dates.map((it) => it.slice(5)),
      series: ids.map((id) => ({
        name: agentName(all, id) || "–",
        type: "bar",
        stack: true,
        data: dates.map((date) => days.filter((it) => it.agentId === id && it.date === date).reduce((sum, it) => sum + count(it), 0)),
      })),
    });
    return [plot(words.tokens, (it) => it.inputTokens + it.outputTokens), plot(words.turns, (it) => it.turns)];
  }, [days, all, words]);
  const columns = columnsOf(words, days);
  const counted = (count: number) => count.toLocaleString(words.locale);
  return (
    <>
      {plots.map((plot) => (
        <Chart key={plot.title} data={plot} />
      ))}
      <div className="table" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">{words.day}</th>
              <th scope="col">{words.agent}</th>
              {columns.map(({ name }) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {days.toReversed().map((it) => (
              <tr key={`${it.date} ${it.agentId}`}>
                <td>{it.date}</td>
                <td>{agentName(all, it.agentId) || "–"}</td>
                {columns.map(({ name, of }) => (
                  <td key={name}>
                    {counted(of(it))} {name === words.outputTokens && it.estimated && <small>{words.estimated}</small>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row" colSpan={2}>
                {words.total}
              </th>
              {columns.map(({ name, of }) => (
                <td key={name}>{counted(days.reduce((total, it) => total + of(it), 0))}</td>
              ))}
            </tr>
          </tfoot>
        </table>
      </div>
    </>
  );
}

/** All days from the first that is known to the last, so that a pause is seen as one. */
function everyDay(days: readonly DayUsageView[]): string[] {
  const known = days.map((it) => it.date).sort();
  const dates: string[] = [];
  const last = Date.parse(known.at(-1)!);
  for (let day = Date.parse(known[0]!); day <= last; day += 86_400_000) dates.push(new Date(day).toISOString().slice(0, 10));
  return dates;
}
