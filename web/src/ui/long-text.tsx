import { useState } from "react";

import { useWords } from "../words";
import { bytes } from "../words/format";
import { CopyButton } from "./copy-button";

const FIRST = 4000;
/** The rest is never rendered, only copied: megabytes of text freeze a page. */
const MOST = 200_000;

/** Machine-made text of any length. */
export function LongText({ text }: { text: string }) {
  const words = useWords();
  const [open, setOpen] = useState(false);
  const shown = text.slice(0, open ? MOST : FIRST);
  return (
    <div className="long">
      <pre tabIndex={0}>{shown}</pre>
      <CopyButton text={text} />
      {text.length > FIRST && (
        <div className="about">
          {shown.length < text.length && <small>{words.truncated(bytes(shown.length), bytes(text.length))}</small>}
          <button type="button" className="link" aria-expanded={open} onClick={() => setOpen(!open)}>
            {open ? words.less : words.more}
          </button>
        </div>
      )}
    </div>
  );
}
