import { memo, useEffect, useRef, useState } from "react";

import { kindOfCode } from "../previews/kinds";
import { CopyButton } from "../ui/copy-button";
import { useChunk } from "../ui/use-chunk";
import type { Coloured, Colouring } from "./colouring/colouring";
import type { Line } from "./colouring/messages";

/** Longer code is shown without colours: nothing may freeze. */
const MOST_COLOURED = 40_000;

const loadPreviews = () => import("./previewed-code");

interface Props {
  code: string;
  language: string;
  /** Whether more of it is coming. */
  live: boolean;
}

export function CodeBlock({ code, language, live }: Props) {
  const kind = live ? null : kindOfCode(language, code);
  const previews = useChunk(loadPreviews, kind !== null);
  if (kind && previews) return <previews.PreviewedCode kind={kind} code={code} language={language} />;
  return (
    <figure className="code">
      <figcaption>
        <span>{language}</span>
        <CopyButton text={code} />
      </figcaption>
      <ColouredCode code={code} language={language} live={live} />
    </figure>
  );
}

export function ColouredCode({ code, language, live }: Props) {
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
