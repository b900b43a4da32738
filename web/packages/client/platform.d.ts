/** All that the client uses of where it runs: browsers, workers, Node and Deno have it.

Only the client's own tsconfig reads this file; a front end has the types of its platform. */

declare class AbortSignal {
  static any(signals: AbortSignal[]): AbortSignal;
  static timeout(ms: number): AbortSignal;
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(): void;
}

declare class URL {
  constructor(url: string, base?: string);
  readonly href: string;
  hash: string;
  readonly searchParams: { set(name: string, value: string): void };
}

declare class TextDecoderStream {
  readonly encoding: string;
}

interface ByteStream {
  pipeThrough(decoder: TextDecoderStream): { getReader(): { read(): Promise<{ done: false; value: string } | { done: true; value: undefined }> } };
}

interface Response {
  readonly ok: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly headers: { get(name: string): string | null };
  readonly body: ByteStream | null;
  text(): Promise<string>;
  json(): Promise<unknown>;
  blob(): Promise<Blob>;
}

declare function fetch(
  url: URL,
  options: { method: string; headers: Record<string, string>; body: string | FormData | null; signal: AbortSignal | null; cache: "no-store" },
): Promise<Response>;

declare class FormData {
  append(name: string, file: Blob): void;
}

/** The content of a file: only stored and handed on. */
interface Blob {
  readonly size: number;
  readonly type: string;
}

interface File extends Blob {
  readonly name: string;
}

declare const crypto: { getRandomValues(bytes: Uint8Array): Uint8Array };
declare function setTimeout(callback: () => void, ms: number): number;
declare function clearTimeout(timer: number): void;
