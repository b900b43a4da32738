import { type ConversationView } from "@threadkeep/client";
import { ArchiveRestore, Trash2 } from "lucide-react";

import { conversations } from "../state/front-end";
import { hrefOf } from "../state/route";
import { toastProblem } from "../ui/problem-bar";
import { toast } from "../ui/toasts";
import { useBulk } from "../ui/use-bulk";
import { useWords } from "../words";
import { useBulkWords } from "../words/bulk";
import { dateTime } from "../words/format";
import { ImportLink } from "./import-link";
import { SelectableList } from "./selectable-list";
import { useConversationsByStatus } from "./use-conversations-by-status";

/** Archived conversations: still readable, found by search, and back with one click. */
export function ArchivePage({ onMenu }: { onMenu: () => void }) {
  const words = useWords();
  const bulkWords = useBulkWords();
  const { list, again, more } = useConversationsByStatus("archived");
  const bulk = useBulk(again);
  const run = async (work: () => Promise<unknown>, message?: string, undo?: () => Promise<unknown>) => {
    try {
      await work();
      if (message && undo) toast(message, { label: words.undo, run: () => void run(undo) });
    } catch (error) {
      toastProblem(words, error);
    } finally {
      await again();
    }
  };
  const titleOf = ({ title }: ConversationView) => title || words.untitled;
  const unarchive = (it: ConversationView) =>
    run(
      () => conversations.change(it.id, { status: "active" }),
      words.unarchivedOne(titleOf(it)),
      () => conversations.change(it.id, { status: "archived" }),
    );
  const remove = (it: ConversationView) =>
    run(
      () => conversations.delete(it.id),
      words.deleted(titleOf(it)),
      () => conversations.restore(it.id),
    );
  return (
    <SelectableList
      title={words.archivedConversations}
      explanation={words.archiveHint}
      empty={words.noArchived}
      list={list}
      onAgain={again}
      onMore={more}
      onMenu={onMenu}
      links={<ImportLink />}
      titleOf={(it) => (
        <a href={hrefOf({ name: "conversation", id: it.id })} dir="auto">
          {titleOf(it)}
        </a>
      )}
      whenOf={(it) => dateTime(it.updatedAt, words.locale)}
      actionsOf={(it) => (
        <>
          <button type="button" aria-label={words.unarchiveNamed(titleOf(it))} onClick={() => void unarchive(it)}>
            {words.unarchive}
          </button>
          <button type="button" className="danger" aria-label={words.deleteNamed(titleOf(it))} onClick={() => void remove(it)}>
            {words.delete}
          </button>
        </>
      )}
      bulkActions={[
        {
          label: words.unarchive,
          icon: <ArchiveRestore aria-hidden />,
          run: (chosen) =>
            bulk(
              chosen,
              (id) => conversations.change(id, { status: "active" }),
              bulkWords.unarchived,
              (id) => conversations.change(id, { status: "archived" }),
            ),
        },
        {
          label: words.delete,
          icon: <Trash2 aria-hidden />,
          isDangerous: true,
          run: (chosen) => bulk(chosen, (id) => conversations.delete(id), bulkWords.deleted, (id) => conversations.restore(id)),
        },
      ]}
    />
  );
}
