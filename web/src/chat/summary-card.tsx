import { type Thread } from "@threadkeep/client";
import { ChevronRight } from "lucide-react";

import { api } from "../api/api";
import { toastProblem } from "../ui/problem-bar";
import { useWords } from "../words";

/** Where the model's memory begins: it receives the messages above only as this summary. */
export function SummaryCard({ summary, thread }: { summary: string; thread: Thread }) {
  const words = useWords();
  const undo = async () => {
    try {
      const path = `/api/conversations/${thread.id}/compactions`;
      const { items } = await api.get<{ items: { id: string }[] }>(path, { limit: 1 });
      if (items[0]) await api.send("DELETE", `${path}/${items[0].id}`);
      await thread.reading.refresh();
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
