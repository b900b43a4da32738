import { ChevronRight } from "lucide-react";

import { type ReceiptView } from "../api/schema";
import { useWords } from "../words";
import { Fact } from "./fact";
import { LongText } from "./long-text";

/** What the model was sent. The prompt's own words are shown to whom the agent belongs. */
export function Receipt({ receipt }: { receipt: ReceiptView }) {
  const words = useWords();
  const { components, messageIds, droppedMessages, tools, summary, prefixShare } = receipt;
  return (
    <>
      <dl className="facts">
        <Fact name={words.tokenEstimate} value={receipt.tokenEstimate.toLocaleString(words.locale)} />
        <Fact
          name={words.conversation}
          value={words.contextMessages(messageIds.length) + (droppedMessages ? `, ${words.contextDropped(droppedMessages)}` : "")}
        />
        {prefixShare !== null && (
          <Fact name={words.prefixShare} value={prefixShare.toLocaleString(words.locale, { style: "percent" })} />
        )}
        {tools.length > 0 && <Fact name={words.contextTools} value={tools.join(", ")} />}
      </dl>
      {components.map((it) => (
        <details key={it.name} className="card">
          <summary>
            <ChevronRight aria-hidden className="fold" />
            <span>{it.name}</span>
            <small>
              {words.characters(it.length.toLocaleString(words.locale))}
              {it.truncated && ` · ${words.cut}`}
            </small>
          </summary>
          <LongText text={it.text ?? it.sha256} />
        </details>
      ))}
      {summary && (
        <details className="card">
          <summary>
            <ChevronRight aria-hidden className="fold" />
            <span>{words.contextSummary}</span>
          </summary>
          <LongText text={summary} />
        </details>
      )}
    </>
  );
}
