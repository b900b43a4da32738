import { contentOf, filesOf, type MessageView, type PageView_MessageView } from "@threadkeep/client";
import { ChevronRight, Paperclip } from "lucide-react";
import { useState } from "react";

import { api } from "../../api/api";
import { toast } from "../../ui/toasts";
import { useWords } from "../../words";
import { useTurnWords } from "../../words/turn";

const PAGE = 200;
/** How many pages back to look. */
const MOST_PAGES = 5;

/** The messages that the model received; loaded when the user opens them. */
export function SentMessages({ conversationId, ids }: { conversationId: string; ids: readonly string[] }) {
  const words = useWords();
  const turnWords = useTurnWords();
  const [found, setFound] = useState<ReadonlyMap<string, MessageView> | null>(null);
  const open = async () => {
    try {
      setFound(await readMessages(conversationId, ids));
    } catch {
      toast(words.serverUnreachable);
    }
  };
  return (
    <details className="card" onToggle={(event) => event.currentTarget.open && !found && void open()}>
      <summary>
        <ChevronRight aria-hidden className="fold" />
        <span>{turnWords.messagesSent}</span>
        <small>{turnWords.contextMessages(ids.length)}</small>
      </summary>
      {!found && <p className="hint">{words.loading}</p>}
      {found && (
        <ol className="sent-messages">
          {ids.map((id) => {
            const message = found.get(id);
            return (
              <li key={id}>
                <small>{message?.role === "user" ? turnWords.you : turnWords.assistant}</small>
                <p dir="auto">{message ? contentOf(message.parts) : turnWords.messageGone}</p>
                {message && <SentFiles message={message} />}
              </li>
            );
          })}
        </ol>
      )}
    </details>
  );
}

/** The files of a message, by name: the model received each as an image, a document or text. */
function SentFiles({ message }: { message: MessageView }) {
  const files = filesOf(message.parts);
  return (
    <>
      {files.map(({ fileId, fileName }) => (
        <p key={fileId} className="sent-file" dir="auto">
          <Paperclip aria-hidden /> {fileName}
        </p>
      ))}
    </>
  );
}

async function readMessages(conversationId: string, ids: readonly string[]): Promise<ReadonlyMap<string, MessageView>> {
  const found = new Map<string, MessageView>();
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page++) {
    const query = { order: "desc", include: "overwritten", limit: PAGE, ...(cursor && { cursor }) };
    const read: PageView_MessageView = await api.get(`/api/conversations/${conversationId}/messages`, query);
    for (const message of read.items) found.set(message.id, message);
    cursor = read.nextCursor;
    if (!cursor || ids.every((id) => found.has(id))) break;
  }
  return found;
}
