import "../styles/page-chunk.css";

import { Search, SquarePen } from "lucide-react";
import { useEffect, useState } from "react";

import { attachmentsOf, dropAttachments, keepFiles, outgoingFiles } from "../state/attachments";
import { draftKeys, forgetDraft, newDraftKey, readDraft, returnDraft } from "../state/drafts";
import { COMMAND, overlay } from "../state/overlay";
import { go, hrefOf } from "../state/route";
import { CopyButton } from "../ui/copy-button";
import { useWords } from "../words";
import { useMissingWords } from "../words/missing";
import { TopBar } from "./top-bar";

/** What is not there. */
export type Missing = "page" | "conversation" | "agent";

export interface MissingProps {
  what: Missing;
  /** The conversation that is not there: something may have been written to it. */
  conversationId?: string;
  onMenu: () => void;
}

/** Says that there is nothing at this address, and where to go from here. */
export function MissingPage({ what, conversationId, onMenu }: MissingProps) {
  const words = useWords();
  const missingWords = useMissingWords();
  const { title, text } = missingWords.missing[what];
  useEffect(() => {
    document.title = `${title} · Threadkeep`;
  }, [title]);
  return (
    <div className="page">
      <TopBar title="" onMenu={onMenu} />
      <div className="content missing">
        <h1>{title}</h1>
        <p>{text}</p>
        {conversationId !== undefined && <WrittenHere conversationId={conversationId} />}
        <div className="choices">
          <a className="button primary" href={hrefOf({ name: "new", agentId: null })}>
            <SquarePen aria-hidden /> {words.newConversation}
          </a>
          {what === "agent" && (
            <a className="button" href={hrefOf({ name: "agents" })}>
              {words.agents}
            </a>
          )}
          <button type="button" onClick={() => overlay.set("palette")}>
            <Search aria-hidden /> {words.search}
          </button>
        </div>
        <p className="hint">{missingWords.searchHint(`${COMMAND}+K`)}</p>
      </div>
    </div>
  );
}

/** What was written to a conversation and not sent before it was deleted: it can be copied, or sent elsewhere. */
function WrittenHere({ conversationId }: { conversationId: string }) {
  const missingWords = useMissingWords();
  const [drafts] = useState(() => draftsIn(conversationId));
  return drafts.map(({ key, text }) => (
    <section key={key} className="written-here" aria-label={missingWords.writtenHere}>
      <p>{missingWords.writtenHere}</p>
      <blockquote dir="auto">{text}</blockquote>
      <div className="choices">
        <button type="button" onClick={() => moveToNew(key, text)}>
          {missingWords.useInNew}
        </button>
        <CopyButton text={text} className="" isNamed />
      </div>
    </section>
  ));
}

function moveToNew(key: string, text: string): void {
  const target = newDraftKey(null);
  const files = attachmentsOf(key).get();
  returnDraft(target, text);
  keepFiles(target, outgoingFiles(files).flatMap(({ kept }) => kept ?? []));
  forgetDraft(key);
  dropAttachments(key);
  go({ name: "new", agentId: null });
}

/** The drafts of a conversation's messages. */
function draftsIn(conversationId: string): { key: string; text: string }[] {
  const keys = draftKeys().filter((key) => key === conversationId || key.startsWith(`${conversationId}.`));
  return keys.map((key) => ({ key, text: readDraft(key) }));
}
