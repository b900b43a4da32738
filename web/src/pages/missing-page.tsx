import { Search, SquarePen } from "lucide-react";
import { useEffect } from "react";

import { COMMAND, overlay } from "../state/overlay";
import { hrefOf } from "../state/route";
import { TopBar } from "../ui/top-bar";
import { useWords } from "../words";

/** What is not there. */
export type Missing = "page" | "conversation" | "agent";

/** Says that there is nothing at this address, and where to go from here. */
export function MissingPage({ what, onMenu }: { what: Missing; onMenu: () => void }) {
  const words = useWords();
  const { title, text } = words.missing[what];
  useEffect(() => {
    document.title = `${title} · Threadkeep`;
  }, [title]);
  return (
    <div className="page">
      <TopBar title="" onMenu={onMenu} />
      <div className="content missing">
        <h1>{title}</h1>
        <p>{text}</p>
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
        <p className="hint">{words.searchHint(`${COMMAND}+K`)}</p>
      </div>
    </div>
  );
}
