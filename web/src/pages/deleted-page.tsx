import { ApiError, type ConversationView } from "@threadkeep/client";
import { ArchiveRestore } from "lucide-react";

import { api } from "../api/api";
import { confirmed } from "../state/confirmation";
import { conversations } from "../state/front-end";
import { go } from "../state/route";
import { toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useBulk } from "../ui/use-bulk";
import { useWords } from "../words";
import { useBulkWords } from "../words/bulk";
import { daysBetween, relativeTime, untilDay } from "../words/format";
import { SelectableList } from "./selectable-list";
import { useConversationsByStatus } from "./use-conversations-by-status";

/** Deleted conversations, until the server purges them. */
export function DeletedPage({ onMenu }: { onMenu: () => void }) {
  const words = useWords();
  const bulkWords = useBulkWords();
  const { list, again, more } = useConversationsByStatus("deleted");
  const bulk = useBulk(again);
  const run = async (work: () => Promise<unknown>) => {
    try {
      await work();
    } catch (error) {
      toastProblem(words, error);
    } finally {
      await again();
    }
  };
  const titleOf = ({ title }: ConversationView) => title || words.untitled;
  const restore = async (it: ConversationView) => {
    await conversations.restore(it.id);
    toast(words.restoredOne(titleOf(it)), { label: words.open, run: () => go({ name: "conversation", id: it.id }) });
  };
  const purge = async (it: ConversationView) => {
    const question = { title: words.deletePermanently, text: words.deletePermanentlySure(titleOf(it)), action: words.deletePermanently };
    if (!(await confirmed(question))) return;
    try {
      await api.send("DELETE", `/api/conversations/${it.id}?purge=true&ifDeleted=true`);
    } catch (error) {
      // In another tab, while the question was open.
      if (error instanceof ApiError && error.code === "PRECONDITION_FAILED") toast(words.restoredMeanwhile(titleOf(it)));
      else throw error;
    }
  };
  const whenOf = ({ deletedAt, purgeAt }: ConversationView) => {
    const ago = deletedAt && (relativeTime(deletedAt, words.locale, Date.now()) || words.justNow);
    return [ago && words.deletedWhen(ago), purgeAt && words.purgedWhen(untilDay(purgeAt, words.locale, Date.now()))]
      .filter(Boolean)
      .join(" · ");
  };
  const [first] = list.items;
  const kept = first?.deletedAt && first.purgeAt ? words.deletedHint(daysBetween(first.deletedAt, first.purgeAt)) : undefined;
  return (
    <SelectableList
      title={words.recentlyDeleted}
      explanation={kept}
      empty={words.noDeleted}
      list={list}
      onAgain={again}
      onMore={more}
      onMenu={onMenu}
      titleOf={(it) => <span dir="auto">{titleOf(it)}</span>}
      whenOf={whenOf}
      actionsOf={(it) => (
        <>
          <button type="button" aria-label={words.restoreNamed(titleOf(it))} onClick={() => void run(() => restore(it))}>
            {words.restore}
          </button>
          <button
            type="button"
            className="danger"
            aria-label={words.deletePermanentlyNamed(titleOf(it))}
            onClick={() => void run(() => purge(it))}
          >
            {words.deletePermanently}
          </button>
        </>
      )}
      bulkActions={[
        {
          label: words.restore,
          icon: <ArchiveRestore aria-hidden />,
          run: (chosen) => bulk(chosen, (id) => conversations.restore(id), bulkWords.restored),
        },
      ]}
    />
  );
}
