import { memo, useEffect, useId, useMemo, useState, type MouseEvent, type ReactNode } from "react";
import ReactMarkdown, { type Components, type Options } from "react-markdown";
import remarkGfm from "remark-gfm";

import { useWords } from "../words";
import { blocksOf } from "./blocks";
import { CITATION, citationMarks } from "./citations";
import { CodeBlock } from "./code-block";
import { closedFences } from "./fences";
import { Formula } from "./formula";
import { hasMath, withMathMarks } from "./math-marks";
import { aboveNext, outline, type Above } from "./outline";
import { PlainWhenBroken } from "./plain-when-broken";
import { Table } from "./table";

/** A longer or deeper piece is shown as plain text: no text may freeze the page. */
const MOST_IN_BLOCK = 30_000;
const TOO_DEEP = /^\s*(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]*){40}/m;

/** Code alone needs no parsing, however long it is. */
const WHOLE_FENCE = /^(`{3,}|~{3,})(\w*)[^\n]*\n([^]*)\n\1\s*$/;

type Plugin = NonNullable<Options["remarkPlugins"]>[number];

interface Props {
  text: string;
  /** Whether more is coming. */
  live?: boolean;
  sources?: number;
  onSource?: (index: number) => void;
  /** Whether it is a piece of another text: its headings are not the page's. */
  isPassage?: boolean;
}

/** Text of a model. HTML in it is not read, and nothing in it is loaded from anywhere. */
export const Markdown = memo(function Markdown({ text, live = false, sources = 0, onSource, isPassage = false }: Props) {
  const blocks = useMemo(() => placedBlocks(text), [text]);
  return (
    <div className="markdown" dir="auto">
      {blocks.map((block, index) => (
        <PlainWhenBroken key={index} text={block.text}>
          <Block
            {...block}
            live={live && index === blocks.length - 1}
            sources={sources}
            onSource={onSource}
            isPassage={isPassage}
          />
        </PlainWhenBroken>
      ))}
    </div>
  );
});

interface PlacedBlock {
  text: string;
  /** The headings before it. */
  above: Above;
}

function placedBlocks(text: string): PlacedBlock[] {
  let next: Above = "";
  return blocksOf(text).map((block) => {
    const above = next;
    next = aboveNext(above, block);
    return { text: block, above };
  });
}

const Block = memo(function Block({ text, above, live = false, sources = 0, onSource, isPassage = false }: Props & PlacedBlock) {
  const math = useMath(hasMath(text));
  const components = useMemo(() => componentsFor(live, onSource, isPassage), [live, onSource, isPassage]);
  const remark = useMemo(
    () => [remarkGfm, outline(above), closedFences, ...(sources ? [citationMarks(sources)] : []), ...(math ? [math] : [])],
    [above, sources, math],
  );
  const footnotes = useFootnotes();
  const [, , language, code] = (text.length > MOST_IN_BLOCK && WHOLE_FENCE.exec(text)) || [];
  if (code) return <CodeBlock code={code} language={language!.toLowerCase()} live={false} />;
  if (text.length > MOST_IN_BLOCK || TOO_DEEP.test(text)) return <pre className="plain">{text}</pre>;
  return (
    <ReactMarkdown remarkPlugins={remark} remarkRehypeOptions={footnotes} components={components}>
      {math ? withMathMarks(text) : text}
    </ReactMarkdown>
  );
});

function useMath(wanted: boolean): Plugin | null {
  const [plugin, setPlugin] = useState<Plugin | null>(null);
  useEffect(() => {
    if (wanted && !plugin) void import("./math").then(({ remark }) => setPlugin(() => remark));
  }, [wanted, plugin]);
  return wanted ? plugin : null;
}

/** How footnotes are named. Those of each text have ids of their own. */
function useFootnotes(): Options["remarkRehypeOptions"] {
  const words = useWords();
  const clobberPrefix = `${useId()}-`;
  return useMemo(
    () => ({
      clobberPrefix,
      footnoteLabel: words.footnotes,
      footnoteLabelTagName: FOOTNOTES_LABEL,
      footnoteBackLabel: words.backToText,
    }),
    [words, clobberPrefix],
  );
}

/** A tag that nothing else in a text has: the parser would make a heading of it, with the same id in each text. */
const FOOTNOTES_LABEL = "header";

/** Shows what a link within a text leads to. The address doesn't change: it names the page that is shown. */
function goTo(event: MouseEvent<HTMLAnchorElement>): void {
  event.preventDefault();
  const target = document.getElementById(decodeURIComponent(event.currentTarget.hash.slice(1)));
  target?.scrollIntoView({ block: "nearest" });
  // A footnote ends with the link back.
  const link = target?.matches("a") ? target : [...(target?.querySelectorAll("a") ?? [])].at(-1);
  link?.focus({ preventScroll: true });
}

function componentsFor(live: boolean, onSource: ((index: number) => void) | undefined, isPassage: boolean): Components {
  const heading = ({ children }: { children?: ReactNode }) => <p className="heading">{children}</p>;
  return {
    ...(isPassage && { h1: heading, h2: heading, h3: heading, h4: heading, h5: heading, h6: heading }),
    [FOOTNOTES_LABEL]: ({ children }) => <p className="footnotes-label">{children}</p>,
    a: ({ href, id, children, "aria-label": label }) => {
      if (href?.startsWith(CITATION)) {
        const index = Number(href.slice(CITATION.length));
        return (
          <button type="button" className="citation" data-source={index} onClick={() => onSource?.(index)}>
            [{children}]
          </button>
        );
      }
      if (href?.startsWith("#"))
        return (
          <a id={id} href={href} aria-label={label} onClick={goTo}>
            {children}
          </a>
        );
      return (
        <a href={href} target="_blank" rel="noopener noreferrer nofollow">
          {children}
        </a>
      );
    },
    // An image on another host would reveal to it that this was read.
    img: ({ src, alt }) => {
      const shown = typeof src === "string" && /^data:image\/(png|jpeg|gif|webp);/.test(src);
      if (shown) return <img src={src} alt={alt ?? ""} />;
      return (
        <a href={typeof src === "string" ? src : undefined} target="_blank" rel="noopener noreferrer nofollow">
          {alt || src}
        </a>
      );
    },
    // The box of a task.
    input: ({ checked }) => <span className="task">{checked ? "☑" : "☐"}</span>,
    table: ({ children }) => <Table live={live}>{children}</Table>,
    code: ({ className, children }) =>
      className?.includes("math-inline") ? (
        <Formula text={String(children)} display={false} />
      ) : (
        <code>{children}</code>
      ),
    pre: ({ node }) => {
      const code = node?.children[0];
      if (code?.type !== "element") return null;
      const names = code.properties["className"];
      const language = Array.isArray(names) ? String(names[0] ?? "").replace("language-", "") : "";
      const text = code.children.map((it) => (it.type === "text" ? it.value : "")).join("");
      if (language === "math") return <Formula text={text} display />;
      return <CodeBlock code={text.replace(/\n$/, "")} language={language.toLowerCase()} live={live && !code.properties["closed"]} />;
    },
  };
}
