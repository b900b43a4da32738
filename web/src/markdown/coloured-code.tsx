import { memo, useEffect, useRef, useState } from "react";

import type { Coloured, Colouring } from "./colouring/colouring";
import type { Line } from "./colouring/messages";

/** Longer code is shown without colours: nothing may freeze. */
const MOST_COLOURED = 40_000;

export interface CodeProps {
  code: string;
  language: string;
  /** Whether more of it is coming. */
  live: boolean;
}

export function ColouredCode({ code, language, live }: CodeProps) {
  const coloured = useColours(code, language, live);
  const { text, lines } = coloured && code.startsWith(coloured.text) ? coloured : PLAIN;
  return (
    <pre tabIndex={0}>
      <code>
        {lines.map((line, index) => (
          <ColouredLine key={index} line={line} isFirst={index === 0} />
        ))}
        {code.slice(text.length)}
      </code>
    </pre>
  );
}

const PLAIN: Coloured = { text: "", lines: [] };

const ColouredLine = memo(function ColouredLine({ line, isFirst }: { line: Line; isFirst: boolean }) {
  return (
    <>
      {isFirst ? "" : "\n"}
      {line.map(([text, colour], index) =>
        colour ? (
          <span key={index} style={{ color: colour }}>
            {text}
          </span>
        ) : (
          text
        ),
      )}
    </>
  );
});

/** The beginning of the code in colours, as far as they are known. */
function useColours(code: string, language: string, live: boolean): Coloured | null {
  const [coloured, setColoured] = useState<Coloured | null>(null);
  const colouring = useRef<Colouring>(null);
  useEffect(() => {
    if (!language || code.length > MOST_COLOURED) return;
    let wanted = true;
    void import("./colouring/colouring").then((it) => {
      if (!wanted) return;
      colouring.current ??= new it.Colouring(language, setColoured);
      colouring.current.show(code, !live);
    });
    return () => {
      wanted = false;
    };
  }, [code, language, live]);
  useEffect(
    () => () => {
      colouring.current?.end();
      colouring.current = null;
    },
    [language],
  );
  return coloured;
}
