/** The messages between the page and its sandbox. */

/** What a sandbox can show. */
export type Kind = "html" | "mermaid" | "svg";

/** From the page, after the scripts that the sandbox runs. */
export interface Content {
  kind: Kind;
  source: string;
  /** What the content is, for assistive technology. */
  label: string;
  look: Look;
  /** Whether an image is as large as the frame allows, instead of as large as it is. */
  isFilling: boolean;
}

/** The page's colours and type, for what has none of its own. */
export interface Look {
  dark: boolean;
  font: string;
  ink: string;
  line: string;
  accent: string;
  soft: string;
  sunk: string;
  paper: string;
}

/** From the sandbox. */
export type Report =
  | { type: "alive" }
  | { type: "height"; height: number }
  | { type: "broken"; reason: string }
  /** It asked for something from a host, and the browser refused. */
  | { type: "blocked"; host: string };

const MOST_CHARACTERS = 2000;

/** The message, if it has the right form: what runs in the sandbox may post anything. */
export function readReport(data: unknown): Report | null {
  const { type, height, reason, host } = (data ?? {}) as Record<string, unknown>;
  if (type === "alive") return { type };
  if (type === "height" && typeof height === "number" && Number.isFinite(height)) return { type, height };
  if (type === "broken" && typeof reason === "string") return { type, reason: reason.slice(0, MOST_CHARACTERS) };
  if (type === "blocked" && typeof host === "string") return { type, host: host.slice(0, 100) };
  return null;
}
