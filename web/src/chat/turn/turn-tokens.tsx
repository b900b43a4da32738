import { type UsageView } from "@threadkeep/client";

import { type ModelCall } from "../../turn/model-calls";
import { useWords } from "../../words";
import { duration } from "../../words/format";
import { useTurnWords } from "../../words/turn";

/** Tokens of each model call, and in all. A turn with one call has them among its facts. */
export function TurnTokens({ calls, usage }: { calls: readonly ModelCall[]; usage: UsageView | null }) {
  const { locale } = useWords();
  const turnWords = useTurnWords();
  if (calls.length < 2 || !calls.some((it) => it.usage)) return null;
  const counted = (count: number | undefined) => (count === undefined ? "–" : count.toLocaleString(locale));
  return (
    <>
      <h3>{turnWords.tokensTitle}</h3>
      <div className="table-box" tabIndex={0} role="group" aria-label={turnWords.tokensTitle}>
        <table className="tokens">
          <thead>
            <tr>
              <th scope="col">{turnWords.call}</th>
              <th scope="col">{turnWords.input}</th>
              <th scope="col">{turnWords.cached}</th>
              <th scope="col">{turnWords.output}</th>
              <th scope="col">{turnWords.time}</th>
            </tr>
          </thead>
          <tbody>
            {calls.map(({ iteration, ms, usage: spent }, index) => (
              <tr key={index}>
                <th scope="row">{iteration}</th>
                <td>{counted(spent?.input_tokens)}</td>
                <td>{counted(spent ? (spent.cache_read_tokens ?? 0) : undefined)}</td>
                <td>{counted(spent?.output_tokens)}</td>
                <td>{ms === null ? "–" : duration(ms)}</td>
              </tr>
            ))}
          </tbody>
          {usage && (
            <tfoot>
              <tr>
                <th scope="row">{turnWords.all}</th>
                <td>{counted(usage.inputTokens)}</td>
                <td>{counted(usage.cacheReadTokens)}</td>
                <td>{counted(usage.outputTokens)}</td>
                <td>{duration(calls.reduce((sum, it) => sum + (it.ms ?? 0), 0))}</td>
              </tr>
            </tfoot>
          )}
        </table>
      </div>
    </>
  );
}
