import { ChevronRight } from "lucide-react";

import { get, send } from "../../packages/client/src/api-client";
import { type Thread } from "../../packages/client/src/thread/thread";
import { useWords } from "../words";
import { toastProblem } from "../ui/problem-bar";

/** Where the model's memory begins: it receives the messages above only as this summary. */
export function SummaryCard({ summary, thread }: { summary: string; thread: Thread }) {
  const words = useWords();
  const undo = async () => {
    try {
      const path = `/api/conversations/${thread.id}/compactions`;
      const { items } = await get<{ items: { id: string }[] }>(path, { limit: 1 });
      if (items[0]) await send("DELETE", `${path}/${items[0].id}`);
      await thread.refresh();
    } catch (error) {
      toastProblem(words, error);
    }
  };
  return (
    <details className="card summary" role="group" aria-label={words.contextSummary}>
      <summary>
        <ChevronRight aria-hidden className="fold" />
        <span>{words.archivedMessages}</span>
      </summary>
      <p dir="auto">{summary}</p>
      <button type="button" onClick={() => void undo()}>
        {words.undo}
      </button>
    </details>
  );
}
