/** Reads server-sent events from a fetch, for `EventSource` cannot send a token. */

/** Splits a stream's text into the `data` of its events; what is incomplete waits for more. */
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
