/** Reads server-sent events from a fetch, for `EventSource` cannot send a token. */

import { ApiError, Unreachable, ask } from "./api-client";

/** The server says something every 15 s at least; a connection that is silent for longer is dead. */
const LONGEST_SILENCE_MS = 40_000;

/** Splits a stream's text into the `data` of its events; buffers an incomplete one. */
export class EventParser {
  #rest = "";
  #data: string[] = [];

  push(text: string): string[] {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    const found: string[] = [];
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line === "") {
        if (this.#data.length) found.push(this.#data.join("\n"));
        this.#data = [];
      } else if (line.startsWith("data:")) {
        this.#data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
      }
    }
    return found;
  }
}

/** Reads a stream after an event until `take` has had enough: true; false when it ends before. Nothing is its start. */
export async function readEvents<E>(
  path: string,
  after: string | null,
  signal: AbortSignal,
  take: (events: E[]) => boolean,
): Promise<boolean> {
  const silence = new AbortController();
  const stop = AbortSignal.any([signal, silence.signal]);
  let timer = setTimeout(() => silence.abort(), LONGEST_SILENCE_MS);
  try {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (after !== null) headers["Last-Event-ID"] = after;
    const answer = await ask(path, { headers, signal: stop });
    if (answer.status === 204) return true;
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    take([]); // it is connected
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), LONGEST_SILENCE_MS);
      if (take(parser.push(value).map((data) => JSON.parse(data) as E))) return true;
    }
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new Unreachable(String(error));
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}

/** Waits; shorter when the browser says that the network is back. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      window.removeEventListener("online", wake);
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    window.addEventListener("online", wake);
    signal?.addEventListener("abort", wake);
  });
}
