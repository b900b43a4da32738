/** Sends requests to a Threadkeep server. */

import { Unreachable, errorFrom, type ApiError } from "./errors.ts";
import { pause, type Pause } from "./pause.ts";

/** The part of `fetch` that the client uses. */
export type Fetch = (url: URL, options: FetchOptions) => Promise<Response>;

export interface FetchOptions {
  method: string;
  headers: Record<string, string>;
  body: string | FormData | null;
  signal: AbortSignal | null;
  cache: "no-store";
}

export interface ApiClientOptions {
  /** The server's address; every path is below it, since a server may be mounted below a path. */
  baseUrl: string | (() => string);
  /** The user's token, or an API key; null if nobody has signed in. */
  token?: string | (() => string | null);
  /**
   * For an application's server whose token is an acting key: the user whom it asks for. Not for a browser, which must
   * never have such a key.
   */
  user?: string;
  /** Who is signed in, where a cookie says so; null if nobody is. A response to somebody else's request is dropped. */
  signedInAs?: () => string | null;
  /** The server no longer accepts the token, or keeps its user out: the error says why. */
  onUnauthorized?: (error: ApiError | Unreachable) => void;
  /** Whether a request got a response of the server's. */
  onReached?: (isReached: boolean) => void;
  /** Whether a request must wait, since who the user is is not known: it fails as if the server were away. */
  holds?: (path: string) => boolean;
  /** How to wait before a retry: a browser's wait ends when the network is back. */
  pause?: Pause;
  /** Used in place of the global `fetch`. */
  fetch?: Fetch;
}

export interface ApiRequest {
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  query?: Record<string, string | number | boolean | null | undefined>;
  /** Sent as it is if it is a form, otherwise as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Used for this request only, as by an upload that reports its progress. */
  fetch?: Fetch;
}

export class ApiClient {
  readonly pause: Pause;

  constructor(private readonly options: ApiClientOptions) {
    this.pause = options.pause ?? pause;
  }

  /** The folder in which the server's paths are: it identifies the server. */
  get address(): string {
    return new URL(".", this.#baseUrl()).href;
  }

  url(path: string, query: ApiRequest["query"] = {}): URL {
    const url = new URL(path.replace(/^\//, ""), this.#baseUrl());
    url.hash = "";
    for (const [name, value] of Object.entries(query))
      if (value !== null && value !== undefined) url.searchParams.set(name, String(value));
    return url;
  }

  /** The response to a request; throws an `ApiError` if the server refuses it, and `Unreachable` if none arrives. */
  async request(path: string, { method = "GET", query, body, headers: extra, signal, fetch: special }: ApiRequest = {}): Promise<Response> {
    if (this.options.holds?.(path)) throw new Unreachable("on hold");
    const headers: Record<string, string> = { Accept: "application/json", ...extra };
    const token = this.#token();
    const who = this.#signedInAs();
    if (token) headers["Authorization"] = `Bearer ${token}`;
    if (this.options.user !== undefined) headers["Threadkeep-User"] = encodeURIComponent(this.options.user);
    const isForm = body instanceof FormData;
    if (body !== undefined && !isForm) headers["Content-Type"] = "application/json";
    let response: Response;
    try {
      const send = special ?? this.options.fetch ?? fetch;
      response = await send(this.url(path, query), {
        method,
        headers,
        body: isForm ? body : body === undefined ? null : JSON.stringify(body),
        signal: signal ?? null,
        cache: "no-store",
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      this.options.onReached?.(false);
      throw new Unreachable(String(error));
    }
    // The response belongs to a user who has signed out since.
    if (this.#token() !== token || (who !== null && this.#signedInAs() !== who)) throw new Unreachable("signed out");
    const error = response.ok ? null : errorFrom(response.status, await textOf(response), response.statusText, response.headers.get("Retry-After"));
    this.options.onReached?.(!(error instanceof Unreachable));
    if (error && response.status === 401 && this.#token() === token && this.#signedInAs() === who) this.options.onUnauthorized?.(error);
    if (error) throw error;
    return response;
  }

  /** The JSON at a path. */
  async get<T>(path: string, query?: ApiRequest["query"], signal?: AbortSignal): Promise<T> {
    return jsonOf<T>(await this.request(path, { query, signal }), signal);
  }

  async send<T>(
    method: "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
    signal?: AbortSignal,
  ): Promise<T> {
    const response = await this.request(path, { method, body, headers, signal });
    return response.status === 204 ? (undefined as T) : jsonOf<T>(response, signal);
  }

  /** Uploads a file; what the server says of it. */
  async upload<T>(path: string, file: Blob, { signal, fetch }: Pick<ApiRequest, "signal" | "fetch"> = {}): Promise<T> {
    const body = new FormData();
    body.append("files", file);
    const response = await this.request(path, { method: "POST", body, signal, fetch });
    return (await jsonOf<{ items: [T] }>(response, signal)).items[0];
  }

  /** Every item of a list, page after page. */
  async *list<T>(path: string, query: ApiRequest["query"] = {}): AsyncGenerator<T, undefined> {
    let cursor: string | null = null;
    do {
      const page: { items: T[]; nextCursor?: string | null } = await this.get(path, { limit: 100, ...query, cursor });
      yield* page.items;
      cursor = page.nextCursor ?? null;
    } while (cursor !== null);
  }

  #baseUrl(): string {
    const { baseUrl } = this.options;
    return typeof baseUrl === "string" ? baseUrl.replace(/\/?$/, "/") : baseUrl();
  }

  #signedInAs(): string | null {
    return this.options.signedInAs?.() ?? null;
  }

  #token(): string | null {
    const { token } = this.options;
    return (typeof token === "function" ? token() : token) ?? null;
  }
}

/** What an error response says; nothing if it broke off. */
async function textOf(response: Response): Promise<string> {
  return response.text().catch(() => "");
}

async function jsonOf<T>(response: Response, signal?: AbortSignal): Promise<T> {
  try {
    return (await response.json()) as T;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable(String(error)); // it broke off, or is somebody else's page
  }
}

/** A unique key for a request; `randomUUID` is missing without TLS. */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (it) => it.toString(16).padStart(2, "0")).join("");
}
