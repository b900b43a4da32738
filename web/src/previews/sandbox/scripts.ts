/** What runs in a sandbox. The page fetches it, because the sandbox has no network, and keeps it for the next one. */

import mermaidUrl from "mermaid/dist/mermaid.min.js?url";

// oxlint-disable-next-line import/default -- Vite makes one script of it, and this its address
import insideUrl from "./inside.ts?worker&url";
import { type Kind } from "./messages";

const fetched = new Map<string, Promise<string>>();

/** In the order in which they run. */
export function scriptsFor(kind: Kind): Promise<string[]> {
  return Promise.all((kind === "mermaid" ? [mermaidUrl, insideUrl] : [insideUrl]).map(textOf));
}

function textOf(url: string): Promise<string> {
  const coming = fetched.get(url) ?? fetchText(url);
  fetched.set(url, coming);
  coming.catch(() => fetched.delete(url)); // fetched again with the next one
  return coming;
}

async function fetchText(url: string): Promise<string> {
  // oxlint-disable-next-line no-restricted-globals -- a file of the page, as a chunk is
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return response.text();
}
