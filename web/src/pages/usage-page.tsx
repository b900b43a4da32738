import { type BudgetView, type MeView, type UsageReportView, type UsageSumView } from "@threadkeep/client";
import { useStore } from "@threadkeep/react";
import { ChevronRight, Download } from "lucide-react";
import { useCallback, useMemo } from "react";

import { api } from "../api/api";
import { download } from "../api/download";
import { useLoaded } from "../api/use-loaded";
import { Chart } from "../chart/chart";
import { TopBar } from "../chat/top-bar";
import { agents, listedAgentName } from "../state/agents";
import { hrefOf } from "../state/route";
import { cachedShare, daysOf, hasCost, sumOf, sumsBy, type Sum } from "../state/usage";
import { Fact } from "../ui/fact";
import { describeProblem } from "../ui/problem-bar";
import { useWords, type Words } from "../words";
import { dateTime, money, shortDay } from "../words/format";
import { useUsageWords, type UsageWords } from "../words/usage";

const GROUPS = "day,agent,model,key";

interface Report {
  items: readonly UsageSumView[];
  budgets: readonly BudgetView[];
  days: readonly string[];
  /** The names of API keys, by id. */
  keys: ReadonlyMap<string, string>;
}

async function readUsage(signal: AbortSignal): Promise<Report> {
  const { items, budgets = [] } = await api.get<UsageReportView>("/api/usage", { by: GROUPS }, signal);
  const hasKeys = items.some((it) => it.keyId) || budgets.some((it) => it.scope === "key");
  const keys = hasKeys ? (await api.get<{ items: { id: string; name: string }[] }>("/api/keys", {}, signal)).items : [];
  return { items, budgets, days: daysOf(items, Date.now()), keys: new Map(keys.map(({ id, name }) => [id, name])) };
}

export function UsagePage({ me, onMenu }: { me: MeView; onMenu: () => void }) {
  const words = useWords();
  const usageWords = useUsageWords();
  const { loaded, again } = useLoaded(readUsage);
  return (
    <div className="page">
      <TopBar title={usageWords.usageTitle} subtitle={usageWords.usageOf} onMenu={onMenu} />
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
        {loaded.state === "ready" && (
          <>
            <Budgets {...loaded.value} />
            {loaded.value.items.length ? <Usage {...loaded.value} me={me} /> : <p className="hint">{usageWords.noUsage}</p>}
          </>
        )}
      </div>
    </div>
  );
}

interface Column {
  name: string;
  format: (sum: Sum) => string;
  /** Said of the value in small letters. */
  noteOf?: (sum: Sum) => string | undefined;
}

function columnsOf(words: Words, usageWords: UsageWords, all: Sum): Column[] {
  const counted = (count: number) => count.toLocaleString(words.locale);
  const percent = new Intl.NumberFormat(words.locale, { style: "percent", maximumFractionDigits: 1 });
  const cached = (sum: Sum) => {
    const share = cachedShare(sum);
    return share === null ? "–" : percent.format(share);
  };
  return [
    { name: usageWords.turns, format: (it) => counted(it.turns) },
    { name: words.inputTokens, format: (it) => counted(it.inputTokens) },
    // Not every provider has a cache.
    ...(all.cacheReadTokens ? [{ name: usageWords.cachedShare, format: cached }] : []),
    { name: words.outputTokens, format: (it) => counted(it.outputTokens), noteOf: (it) => (it.estimated ? words.estimated : undefined) },
    ...(all.cost || all.unpricedCalls ? [{ name: words.cost, format: (it: Sum) => costText(words, usageWords, it) }] : []),
  ];
}

/** A call whose price isn't known is not called free. */
function costText(words: Words, usageWords: UsageWords, { cost, unpricedCalls }: Sum): string {
  if (!unpricedCalls) return cost ? money(cost, words.locale) : "–";
  return hasCost(cost) ? usageWords.atLeast(money(cost, words.locale)) : usageWords.notKnown;
}

/** Whose price isn't known, and where to set it. */
function Unpriced({ models, calls, isAdmin }: { models: readonly string[]; calls: number; isAdmin: boolean }) {
  const words = useWords();
  const usageWords = useUsageWords();
  const named = new Intl.ListFormat(words.locale).format(models);
  return (
    <p className="hint">
      {usageWords.unpriced(named, calls.toLocaleString(words.locale), calls === 1)}{" "}
      {isAdmin ? <a href={hrefOf({ name: "gateways" })}>{usageWords.setPrice}</a> : usageWords.adminSetsPrice}
    </p>
  );
}

function Budgets({ budgets, keys }: Report) {
  const words = useWords();
  const usageWords = useUsageWords();
  const all = useStore(agents);
  if (!budgets.length) return null;
  const nameOf = ({ scope, id, period }: BudgetView) => {
    const whose = { user: usageWords.yourBudget, agent: listedAgentName(all, id, words.deletedAgent), key: keys.get(id) ?? usageWords.deletedKey };
    return usageWords.budgetOf(whose[scope], usageWords.perPeriod[period]);
  };
  return (
    <ul className="budgets" aria-label={usageWords.budgets}>
      {budgets.map((budget) => (
        <li key={`${budget.scope} ${budget.id} ${budget.period}`}>
          <Budget budget={budget} name={nameOf(budget)} />
        </li>
      ))}
    </ul>
  );
}

function Budget({ budget, name }: { budget: BudgetView; name: string }) {
  const words = useWords();
  const usageWords = useUsageWords();
  const { currency } = budget;
  const shown = (amount: string) => money({ amount, currency }, words.locale);
  const limit = Number(budget.limit);
  const spent = Math.min(1, Number(budget.spent) / limit);
  const reserved = Math.min(1 - spent, Number(budget.reserved) / limit);
  const said = usageWords.spentOf(shown(budget.spent), shown(budget.limit));
  return (
    <>
      <div className="budget-name">
        <span dir="auto">{name}</span>
        <span>{said}</span>
      </div>
      <div
        className="budget-bar"
        role="meter"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={limit}
        aria-valuenow={Number(budget.spent)}
        aria-valuetext={said}
        data-level={spent >= 1 ? "full" : spent >= 0.8 ? "high" : undefined}
      >
        <span style={{ width: `${spent * 100}%` }} />
        <span className="reserved" style={{ width: `${reserved * 100}%` }} />
      </div>
      <p className="hint">
        {Number(budget.reserved) > 0 && `${usageWords.reservedNow(shown(budget.reserved))} `}
        {usageWords.resetsAt(dateTime(budget.resetsAt, words.locale))}
      </p>
    </>
  );
}

function Usage({ items, days, keys, me }: Report & { me: MeView }) {
  const words = useWords();
  const usageWords = useUsageWords();
  const all = useStore(agents);
  const nameOf = useCallback((id: string | null) => listedAgentName(all, id ?? undefined, words.deletedAgent), [all, words]);
  const byAgent = useMemo(() => sumsBy(items, "agentId"), [items]);
  const total = useMemo(() => sumOf(items), [items]);
  const plots = useMemo(() => {
    const plot = (title: string, count: (sum: Sum) => number) => ({
      title,
      labels: days.map((it) => shortDay(it, words.locale)),
      series: byAgent.map(({ value }) => ({
        name: nameOf(value),
        type: "bar",
        stack: true,
        data: days.map((day) => count(sumOf(items.filter((it) => (it.agentId ?? null) === value && it.date === day)))),
      })),
    });
    return [
      ...(hasCost(total.cost) ? [plot(`${words.cost} (${total.cost.currency})`, (it) => Number(it.cost?.amount ?? 0))] : []),
      plot(usageWords.tokens, (it) => it.inputTokens + it.outputTokens),
      plot(usageWords.turns, (it) => it.turns),
    ];
  }, [items, days, byAgent, nameOf, words, usageWords, total]);
  const columns = columnsOf(words, usageWords, total);
  const byModel = sumsBy(items, "model");
  const byKey = sumsBy(items, "keyId");
  return (
    <>
      <dl className="facts totals">
        {columns.map(({ name, format, noteOf }) => (
          <Fact key={name} name={name} value={format(total)} note={noteOf?.(total)} />
        ))}
      </dl>
      {total.unpricedCalls > 0 && (
        <Unpriced
          models={byModel.filter(({ sum }) => sum.unpricedCalls).map(({ value }) => value ?? usageWords.unknownModel)}
          calls={total.unpricedCalls}
          isAdmin={me.role === "admin"}
        />
      )}
      {plots.map((plot) => (
        <Chart key={plot.title} data={plot} />
      ))}
      <h2 id="usage-agents">{usageWords.byAgent}</h2>
      <Table
        label="usage-agents"
        first={words.agent}
        columns={columns}
        rows={byAgent.map(({ value, sum }) => ({ key: value ?? "", name: nameOf(value), sum }))}
        total={total}
      />
      <h2 id="usage-models">{usageWords.byModel}</h2>
      <Table
        label="usage-models"
        first={words.model}
        columns={columns}
        rows={byModel.map(({ value, sum }) => ({ key: value ?? "", name: value ?? usageWords.unknownModel, sum }))}
        total={total}
      />
      {byKey.some(({ value }) => value) && (
        <>
          <h2 id="usage-keys">{usageWords.byKey}</h2>
          <Table
            label="usage-keys"
            first={usageWords.apiKey}
            columns={columns}
            rows={byKey.map(({ value, sum }) => ({
              key: value ?? "",
              name: value ? (keys.get(value) ?? usageWords.deletedKey) : usageWords.withoutKey,
              sum,
            }))}
            total={total}
          />
        </>
      )}
      <details className="card">
        <summary>
          <ChevronRight aria-hidden className="fold" />
          <span id="usage-days">{usageWords.byDay}</span>
        </summary>
        <Table
          label="usage-days"
          first={usageWords.day}
          columns={columns}
          rows={days.toReversed().map((day) => ({ key: day, name: day, sum: sumOf(items.filter((it) => it.date === day)) }))}
          total={total}
        />
      </details>
      <button type="button" onClick={() => void download("/api/usage", { by: GROUPS, format: "csv" }, "usage.csv")}>
        <Download aria-hidden />
        {usageWords.downloadCsv}
      </button>
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
  const usageWords = useUsageWords();
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
                <Cell key={column.name} column={column} sum={sum} />
              ))}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{usageWords.total}</th>
            {columns.map((column) => (
              <Cell key={column.name} column={column} sum={total} />
            ))}
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

function Cell({ column: { format, noteOf }, sum }: { column: Column; sum: Sum }) {
  const note = noteOf?.(sum);
  return (
    <td>
      {format(sum)}
      {note && <small> {note}</small>}
    </td>
  );
}
