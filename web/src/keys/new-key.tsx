import { type NewKeyView } from "@threadkeep/client";
import { useEffect, useId, useRef, useState } from "react";

import { api } from "../api/api";
import { CopyButton } from "../ui/copy-button";
import { useKeyWords } from "../words/keys";
import { snippetsFor } from "./snippets";

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
      <Connect made={made} />
      <button type="button" className="primary" onClick={onDone}>
        {keyWords.saved}
      </button>
    </section>
  );
}

function Connect({ made }: { made: NewKeyView }) {
  const keyWords = useKeyWords();
  const id = useId();
  const [open, setOpen] = useState(0);
  const snippets = snippetsFor({
    url: api.url("").href.replace(/\/$/, ""),
    key: made.key,
    canChat: made.scopes.some((it) => it !== "read"),
    agentId: made.agents?.[0] ?? null,
  });
  const shown = snippets[open] ?? snippets[0];
  return (
    <section className="connect" aria-labelledby={id}>
      <h3 id={id}>{keyWords.connect}</h3>
      <div className="choices" role="group" aria-labelledby={id}>
        {snippets.map(({ name }, index) => (
          <button key={name} type="button" aria-pressed={index === open} onClick={() => setOpen(index)}>
            {name}
          </button>
        ))}
      </div>
      {shown && (
        <div className="snippet">
          <pre tabIndex={0} aria-label={shown.name} data-language={shown.language}>
            <code>{shown.code}</code>
          </pre>
          <CopyButton text={shown.code} label={keyWords.copyCode(shown.name)} />
        </div>
      )}
    </section>
  );
}
