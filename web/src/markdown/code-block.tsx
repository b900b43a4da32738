import { useEffect, useState } from "react";
import { type ThemedToken } from "shiki/core";

import { CopyButton } from "../ui/copy-button";

/** Longer code is shown without colours: nothing may freeze. */
const MOST_COLOURED = 40_000;

export function CodeBlock({ code, language, live }: { code: string; language: string; live: boolean }) {
  const [lines, setLines] = useState<ThemedToken[][] | null>(null);
  useEffect(() => {
    if (live || !language || code.length > MOST_COLOURED) return;
    let wanted = true;
    void import("./highlight")
      .then((it) => it.highlight(code, language))
      .then((found) => wanted && setLines(found));
    return () => {
      wanted = false;
    };
  }, [code, language, live]);
  return (
    <figure className="code">
      <figcaption>
        <span>{language}</span>
        <CopyButton text={code} />
      </figcaption>
      <pre tabIndex={0}>
        <code>{lines ? lines.map((tokens, line) => <Line key={line} tokens={tokens} />) : code}</code>
      </pre>
    </figure>
  );
}

function Line({ tokens }: { tokens: ThemedToken[] }) {
  return (
    <>
      {tokens.map((token, index) => (
        <span key={index} style={token.color ? { color: token.color } : undefined}>
          {token.content}
        </span>
      ))}
      {"\n"}
    </>
  );
}
