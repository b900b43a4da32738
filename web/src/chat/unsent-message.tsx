import { shownFile, type OutboxItem } from "@threadkeep/client";

import { useWords } from "../words";
import { MessageFiles } from "./files/message-files";
import { UnsentStatus } from "./unsent-status";

/** The first message of a conversation that does not exist yet. */
export function UnsentMessage({ item }: { item: OutboxItem }) {
  const words = useWords();
  if (item.entry.kind !== "message") return null;
  const { content, files } = item.entry;
  return (
    <article className="user-message" aria-label={words.youSaid}>
      <MessageFiles files={files.map(shownFile)} />
      {content && (
        <div className="bubble" dir="auto">
          {content}
        </div>
      )}
      <UnsentStatus item={item} />
    </article>
  );
}
