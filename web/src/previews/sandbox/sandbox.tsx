import { useStore } from "@threadkeep/react";
import { useLayoutEffect, useRef, useState } from "react";

import { theme } from "../../state/preferences";
import { readReport, type Content, type Kind, type Look } from "./messages";
import sandboxUrl from "./sandbox.html?url";
import { scriptsFor } from "./scripts";
import { Vigil, type Misbehaviour } from "./vigil";

const LOWEST = 48;
/** A page as high as its frame would grow with it for ever. */
const MOST_HEIGHTS = 12;

/** Why nothing is shown; `broken` with the reason in the words of who couldn't read it. */
export type Failure = { what: Misbehaviour | "missing" } | { what: "broken"; reason: string };

interface Props {
  kind: Kind;
  source: string;
  /** What it shows, for assistive technology. */
  label: string;
  /** How many times larger it is than its place, instead of as high as its content. */
  scale?: number;
  /** The content is shown, with this height. */
  onHeight?: (height: number) => void;
  onFailure: (failure: Failure) => void;
  /** The browser refused what the content wanted from a host. */
  onBlocked?: (host: string) => void;
}

/** Shows what a model or a tool wrote, in a document without an origin and without a network. */
export function Sandbox({ kind, source, label, scale, onHeight, onFailure, onBlocked }: Props) {
  const frame = useRef<HTMLIFrameElement>(null);
  const isDark = useStore(theme) === "dark";
  const [height, setHeight] = useState(LOWEST);
  const told = useRef({ onHeight, onFailure, onBlocked });
  told.current = { onHeight, onFailure, onBlocked };
  // Only diagrams take the page's colours.
  const look = kind === "mermaid" && isDark ? "dark" : "light";
  // Before it can have loaded.
  useLayoutEffect(() => {
    const element = frame.current!;
    const closing = new AbortController();
    const { signal } = closing;
    let vigil: Vigil | null = null;
    let heights = 0;
    const hear = ({ source: from, data }: MessageEvent) => {
      if (from !== element.contentWindow) return;
      vigil?.heard();
      const report = readReport(data);
      if (report?.type === "broken") told.current.onFailure({ what: "broken", reason: report.reason });
      if (report?.type === "blocked") told.current.onBlocked?.(report.host);
      if (report?.type !== "height" || ++heights > MOST_HEIGHTS) return;
      setHeight(Math.max(LOWEST, report.height));
      told.current.onHeight?.(report.height);
    };
    const fill = async () => {
      try {
        const scripts = await scriptsFor(kind);
        if (signal.aborted) return;
        const content: Content = { kind, source, label, look: lookOf(isDark), isFilling: scale !== undefined };
        vigil = new Vigil((what) => told.current.onFailure({ what }));
        // Without an origin, it has no address to post to; nothing but our document has run in it yet.
        element.contentWindow?.postMessage(scripts, "*");
        element.contentWindow?.postMessage(content, "*");
      } catch {
        if (!signal.aborted) told.current.onFailure({ what: "missing" });
      }
    };
    window.addEventListener("message", hear, { signal });
    // Once: a page that is written into it loads, too.
    element.addEventListener("load", () => void fill(), { signal, once: true });
    return () => {
      closing.abort();
      vigil?.end();
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- the frame is another one only with these
  }, [kind, source, look]);
  // What is shown in it can't be replaced: anything else gets another frame.
  return (
    <iframe
      key={`${look} ${source}`}
      ref={frame}
      className="sandbox"
      data-kind={kind}
      title={label}
      src={sandboxUrl}
      sandbox="allow-scripts"
      referrerPolicy="no-referrer"
      tabIndex={kind === "html" ? 0 : -1}
      style={scale === undefined ? { height } : { width: `${scale * 100}%`, height: `${scale * 100}%` }}
    />
  );
}

function lookOf(dark: boolean): Look {
  const styles = getComputedStyle(document.documentElement);
  const colour = (name: string) => styles.getPropertyValue(name).trim();
  return {
    dark,
    font: getComputedStyle(document.body).fontFamily,
    ink: colour("--ink"),
    line: colour("--ink-faint"),
    accent: colour("--pine"),
    soft: colour("--pine-soft"),
    sunk: colour("--sunk"),
    paper: colour("--paper"),
  };
}
