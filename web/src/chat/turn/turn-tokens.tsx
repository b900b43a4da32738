import { type CostView, type UsageView } from "@threadkeep/client";

import { type ModelCall } from "../../turn/model-calls";
import { useWords } from "../../words";
import { duration, money } from "../../words/format";
import { useTurnWords } from "../../words/turn";

interface Props {
  calls: readonly ModelCall[];
  usage: UsageView | null;
  cost: CostView | null | undefined;
}

/** Tokens, cost and model of each model call, and in all. A turn with one call has them among its facts. */
export function TurnTokens({ calls, usage, cost }: Props) {
  const words = useWords();
  const { locale } = words;
  const turnWords = useTurnWords();
  if (calls.length < 2 || !calls.some((it) => it.usage)) return null;
  const paid = (it: CostView | null | undefined) => (it ? money(it, locale) : "–");
  const hasCosts = calls.some((it) => it.usage?.cost);
  const hasModels = new Set(calls.map((it) => it.model)).size > 1;
  const counted = (count: number | undefined) => (count === undefined ? "–" : count.toLocaleString(locale));
  return (
    <>
      <h3>{turnWords.tokensTitle}</h3>
      <div className="table-box" tabIndex={0} role="group" aria-label={turnWords.tokensTitle}>
        <table className="tokens">
          <thead>
            <tr>
              <th scope="col">{turnWords.call}</th>
              {hasModels && <th scope="col">{words.model}</th>}
              <th scope="col">{turnWords.input}</th>
              <th scope="col">{turnWords.cached}</th>
              <th scope="col">{turnWords.output}</th>
              {hasCosts && <th scope="col">{words.cost}</th>}
              <th scope="col">{turnWords.time}</th>
            </tr>
          </thead>
          <tbody>
            {calls.map(({ iteration, ms, usage: spent, model }, index) => (
              <tr key={index}>
                <th scope="row">{iteration}</th>
                {hasModels && <td>{model ?? "–"}</td>}
                <td>{counted(spent?.input_tokens)}</td>
                <td>{counted(spent ? (spent.cache_read_tokens ?? 0) : undefined)}</td>
                <td>{counted(spent?.output_tokens)}</td>
                {hasCosts && <td>{paid(spent?.cost)}</td>}
                <td>{ms === null ? "–" : duration(ms)}</td>
              </tr>
            ))}
          </tbody>
          {usage && (
            <tfoot>
              <tr>
                <th scope="row">{turnWords.all}</th>
                {hasModels && <td>–</td>}
                <td>{counted(usage.inputTokens)}</td>
                <td>{counted(usage.cacheReadTokens)}</td>
                <td>{counted(usage.outputTokens)}</td>
                {hasCosts && <td>{paid(cost)}</td>}
                <td>{duration(calls.reduce((sum, it) => sum + (it.ms ?? 0), 0))}</td>
              </tr>
            </tfoot>
          )}
        </table>
      </div>
    </>
  );
}
