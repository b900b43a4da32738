import { type NewKeyView } from "@threadkeep/client";
import { useEffect, useRef } from "react";

import { api } from "../api/api";
import { CopyButton } from "../ui/copy-button";
import { useKeyWords } from "../words/keys";
import { Connect } from "./connect";

/** A key that was just made, this once, and programs that use it. */
export function NewKey({ made, onDone }: { made: NewKeyView; onDone: () => void }) {
  const keyWords = useKeyWords();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  return (
    <section className="card new-key" aria-labelledby="new-key">
      <h2 id="new-key" ref={heading} tabIndex={-1}>
        {keyWords.made(made.name)}
      </h2>
      <p>{keyWords.shownOnce}</p>
      <div className="secret">
        <code>{made.key}</code>
        <CopyButton text={made.key} label={keyWords.copyKey} />
      </div>
      <h3>{keyWords.connect}</h3>
      {made.actAs ? <ActingCommand value={made.key} /> : <Connect made={made} />}
      <button type="button" className="primary" onClick={onDone}>
        {keyWords.saved}
      </button>
    </section>
  );
}

/** How an application's server uses its key. */
function ActingCommand({ value }: { value: string }) {
  const keyWords = useKeyWords();
  const command = `curl ${api.url("/api/me").href} -H "Authorization: Bearer ${value}" -H "Threadkeep-User: 42"`;
  return (
    <>
      <p className="hint">{keyWords.namesUser}</p>
      <div className="secret">
        <code>{command}</code>
        <CopyButton text={command} label={keyWords.copyCommands} />
      </div>
    </>
  );
}
