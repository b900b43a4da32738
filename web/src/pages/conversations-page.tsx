import { type ConversationView } from "@threadkeep/client";

import { useActiveBulk } from "../sidebar/use-active-bulk";
import { hrefOf } from "../state/route";
import { useWords } from "../words";
import { useBulkWords } from "../words/bulk";
import { dateTime } from "../words/format";
import { ImportLink } from "./import-link";
import { SelectableList } from "./selectable-list";
import { useConversationsByStatus } from "./use-conversations-by-status";

/** All conversations, to put several in order at once. */
export function ConversationsPage({ onMenu }: { onMenu: () => void }) {
  const words = useWords();
  const bulkWords = useBulkWords();
  const { list, again, more } = useConversationsByStatus("active");
  const actions = useActiveBulk(again);
  const titleOf = ({ title }: ConversationView) => title || words.untitled;
  return (
    <SelectableList
      title={words.allConversations}
      explanation={bulkWords.hint}
      empty={words.noConversations}
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
      bulkActions={actions}
    />
  );
}
