import { Archive, Trash2 } from "lucide-react";

import { conversations } from "../state/front-end";
import { type BulkAction } from "../ui/bulk-bar";
import { useBulk } from "../ui/use-bulk";
import { useWords } from "../words";
import { useBulkWords } from "../words/bulk";

/** What can be done with several active conversations: archive or delete them. */
export function useActiveBulk(again: () => Promise<void>): BulkAction[] {
  const words = useWords();
  const bulkWords = useBulkWords();
  const bulk = useBulk(again);
  return [
    {
      label: words.archive,
      icon: <Archive aria-hidden />,
      run: (chosen) =>
        bulk(
          chosen,
          (id) => conversations.change(id, { status: "archived" }),
          bulkWords.archived,
          (id) => conversations.change(id, { status: "active" }),
        ),
    },
    {
      label: words.delete,
      icon: <Trash2 aria-hidden />,
      isDangerous: true,
      run: (chosen) => bulk(chosen, (id) => conversations.delete(id), bulkWords.deleted, (id) => conversations.restore(id)),
    },
  ];
}
