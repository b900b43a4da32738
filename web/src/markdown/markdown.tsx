import { memo, useEffect, useMemo, useState, type ReactNode } from "react";
import ReactMarkdown, { type Components, type Options } from "react-markdown";
import remarkGfm from "remark-gfm";

import { blocksOf } from "./blocks";
import { CITATION, citationMarks } from "./citations";
import { CodeBlock } from "./code-block";
import { Formula } from "./formula";
import { hasMath, withMathMarks } from "./math-marks";
import { PlainWhenBroken } from "./plain-when-broken";

/** A longer or deeper piece is shown as plain text: no text may freeze the page. */
const MOST_IN_BLOCK = 30_000;
const TOO_DEEP = /^\s*(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]*){40}/m;

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
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div className="markdown" dir="auto">
      {blocks.map((block, index) => (
        <PlainWhenBroken key={index} text={block}>
          <Block
            text={block}
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

const Block = memo(function Block({ text, live = false, sources = 0, onSource, isPassage = false }: Props) {
  const math = useMath(hasMath(text));
  const components = useMemo(() => componentsFor(live, onSource, isPassage), [live, onSource, isPassage]);
  const remark = useMemo(
    () => [remarkGfm, ...(sources ? [citationMarks(sources)] : []), ...(math ? [math] : [])],
    [sources, math],
  );
  if (text.length > MOST_IN_BLOCK || TOO_DEEP.test(text)) return <pre className="plain">{text}</pre>;
  return (
    <ReactMarkdown remarkPlugins={remark} components={components}>
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

function componentsFor(live: boolean, onSource: ((index: number) => void) | undefined, isPassage: boolean): Components {
  const heading = ({ children }: { children?: ReactNode }) => <p className="heading">{children}</p>;
  return {
    ...(isPassage && { h1: heading, h2: heading, h3: heading, h4: heading, h5: heading, h6: heading }),
    a: ({ href, children }) => {
      if (href?.startsWith(CITATION)) {
        const index = Number(href.slice(CITATION.length));
        return (
          <button type="button" className="citation" data-source={index} onClick={() => onSource?.(index)}>
            [{children}]
          </button>
        );
      }
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
    table: ({ children }) => (
      <div className="table" tabIndex={0}>
        <table>{children}</table>
      </div>
    ),
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
      return <CodeBlock code={text.replace(/\n$/, "")} language={language.toLowerCase()} live={live} />;
    },
  };
}
