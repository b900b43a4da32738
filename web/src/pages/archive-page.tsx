import { type ConversationView } from "@threadkeep/client";

import { useInactiveConversations } from "../hooks/use-inactive-conversations";
import { conversations } from "../state/front-end";
import { hrefOf } from "../state/route";
import { toast } from "../state/toasts";
import { toastProblem } from "../ui/problem-bar";
import { useWords } from "../words";
import { dateTime } from "../words/format";
import { InactiveList } from "./inactive-list";

/** Archived conversations: still readable, found by search, and back with one click. */
export function ArchivePage({ onMenu }: { onMenu: () => void }) {
  const words = useWords();
  const { list, again, more } = useInactiveConversations("archived");
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
    <InactiveList
      title={words.archivedConversations}
      explanation={words.archiveHint}
      empty={words.noArchived}
      list={list}
      onAgain={again}
      onMore={more}
      onMenu={onMenu}
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
    />
  );
}
