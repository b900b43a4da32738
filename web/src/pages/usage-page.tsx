import { type DayUsageView, type UsageReportView } from "@threadkeep/client";
import { ChevronRight } from "lucide-react";
import { useCallback, useMemo } from "react";

import { api } from "../api/api";
import { Chart } from "../chart/chart";
import { useLoaded } from "../hooks/use-loaded";
import { useStore } from "../hooks/use-store";
import { agentName, agents } from "../state/agents";
import { agentSums, cachedShare, daysOf, sumOf, type Sum } from "../state/usage";
import { Fact } from "../ui/fact";
import { describeProblem } from "../ui/problem-bar";
import { TopBar } from "../ui/top-bar";
import { useWords, type Words } from "../words";
import { shortDay } from "../words/format";

async function readUsage(signal: AbortSignal): Promise<{ items: DayUsageView[]; days: string[] }> {
  const { items } = await api.get<UsageReportView>("/api/usage", {}, signal);
  return { items, days: daysOf(items, Date.now()) };
}

export function UsagePage({ onMenu }: { onMenu: () => void }) {
  const words = useWords();
  const { loaded, again } = useLoaded(readUsage);
  return (
    <div className="page">
      <TopBar title={words.usageTitle} subtitle={words.usageOf} onMenu={onMenu} />
      <div className="content usage">
        {loaded.state === "loading" && <p className="hint">{words.loading}</p>}
        {loaded.state === "failed" && (
          <p className="hint" role="alert">
            {describeProblem(words, loaded.problem)}{" "}
            <button type="button" className="link" onClick={() => void again()}>
              {words.retry}
            </button>
          </p>
        )}
        {loaded.state === "ready" &&
          (loaded.value.items.length ? <Usage {...loaded.value} /> : <p className="hint">{words.noUsage}</p>)}
      </div>
    </div>
  );
}

interface Column {
  name: string;
  format: (sum: Sum) => string;
}

function columnsOf(words: Words, all: Sum): Column[] {
  const counted = (count: number) => count.toLocaleString(words.locale);
  const percent = new Intl.NumberFormat(words.locale, { style: "percent", maximumFractionDigits: 1 });
  const cached = (sum: Sum) => {
    const share = cachedShare(sum);
    return share === null ? "–" : percent.format(share);
  };
  return [
    { name: words.turns, format: (it) => counted(it.turns) },
    { name: words.inputTokens, format: (it) => counted(it.inputTokens) },
    // Not every provider has a cache.
    ...(all.cacheReadTokens ? [{ name: words.cachedShare, format: cached }] : []),
    { name: words.outputTokens, format: (it) => counted(it.outputTokens) + (it.estimated ? ` (${words.estimated})` : "") },
  ];
}

function Usage({ items, days }: { items: readonly DayUsageView[]; days: readonly string[] }) {
  const words = useWords();
  const all = useStore(agents);
  const nameOf = useCallback((id: string) => agentName(all, id) || words.deletedAgent, [all, words]);
  const byAgent = useMemo(() => agentSums(items), [items]);
  const plots = useMemo(() => {
    const plot = (title: string, count: (sum: Sum) => number) => ({
      title,
      labels: days.map((it) => shortDay(it, words.locale)),
      series: byAgent.map(({ agentId }) => ({
        name: nameOf(agentId),
        type: "bar",
        stack: true,
        data: days.map((day) => count(sumOf(items.filter((it) => it.agentId === agentId && it.date === day)))),
      })),
    });
    return [plot(words.tokens, (it) => it.inputTokens + it.outputTokens), plot(words.turns, (it) => it.turns)];
  }, [items, days, byAgent, nameOf, words]);
  const total = sumOf(items);
  const columns = columnsOf(words, total);
  return (
    <>
      <dl className="facts totals">
        {columns.map(({ name, format }) => (
          <Fact key={name} name={name} value={format(total)} />
        ))}
      </dl>
      {plots.map((plot) => (
        <Chart key={plot.title} data={plot} />
      ))}
      <h2 id="usage-agents">{words.byAgent}</h2>
      <Table
        label="usage-agents"
        first={words.agent}
        columns={columns}
        rows={byAgent.map(({ agentId, sum }) => ({ key: agentId, name: nameOf(agentId), sum }))}
        total={total}
      />
      <details className="card">
        <summary>
          <ChevronRight aria-hidden className="fold" />
          <span id="usage-days">{words.byDay}</span>
        </summary>
        <Table
          label="usage-days"
          first={words.day}
          columns={columns}
          rows={days.toReversed().map((day) => ({ key: day, name: day, sum: sumOf(items.filter((it) => it.date === day)) }))}
          total={total}
        />
      </details>
    </>
  );
}

interface TableProps {
  /** The id of what names it. */
  label: string;
  first: string;
  columns: readonly Column[];
  rows: readonly { key: string; name: string; sum: Sum }[];
  total: Sum;
}

function Table({ label, first, columns, rows, total }: TableProps) {
  const words = useWords();
  return (
    <div className="table" tabIndex={0} role="region" aria-labelledby={label}>
      <table aria-labelledby={label}>
        <thead>
          <tr>
            <th scope="col">{first}</th>
            {columns.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, name, sum }) => (
            <tr key={key} data-empty={sum.turns === 0}>
              <th scope="row" dir="auto">
                {name}
              </th>
              {columns.map((column) => (
                <td key={column.name}>{column.format(sum)}</td>
              ))}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{words.total}</th>
            {columns.map(({ name, format }) => (
              <td key={name}>{format(total)}</td>
            ))}
          </tr>
        </tfoot>
      </table>
    </div>
  );
}
