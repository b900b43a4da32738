/** Reads server-sent events with `fetch`, since `EventSource` cannot send a token. */

import { type ApiClient } from "./api-client.ts";
import { ApiError, Unreachable } from "./errors.ts";

/** The server sends something every 15 s at least; a connection that is silent for longer is dead. Nothing else tells so behind a
proxy that keeps the response open when its server dies. To open one again too early costs a request, and loses nothing. */
const LONGEST_SILENCE_MS = 20_000;

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

/** The events of a response as they arrive, in lists. */
export async function* eventsOf<E>(response: Response): AsyncGenerator<E[]> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield parser.push(value).map((data) => JSON.parse(data) as E);
  }
}

/** Passes a stream's events after `lastId` (null: all of them) to `onEvents`, and first an empty list once connected.

Returns true when `onEvents` does, or if the server has no more events, and false if the connection ends before. */
export async function readEvents<E>(
  api: ApiClient,
  path: string,
  lastId: string | null,
  signal: AbortSignal,
  onEvents: (events: E[]) => boolean,
): Promise<boolean> {
  const silence = new AbortController();
  const stop = AbortSignal.any([signal, silence.signal]);
  let timer = setTimeout(() => silence.abort(), LONGEST_SILENCE_MS);
  try {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (lastId !== null) headers["Last-Event-ID"] = lastId;
    const response = await api.request(path, { headers, signal: stop });
    if (response.status === 204) return true;
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    onEvents([]);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), LONGEST_SILENCE_MS);
      if (onEvents(parser.push(value).map((data) => JSON.parse(data) as E))) return true;
    }
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new Unreachable(String(error));
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}
