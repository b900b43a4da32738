/** Sends requests to a Threadkeep server. */

import { Unreachable, errorFrom } from "./errors";
import { pause, type Pause } from "./pause";

export interface ApiClientOptions {
  /** The server's address; every path is relative to it, since a server may be mounted below a path. */
  baseUrl: () => string;
  /** The user's token; null if nobody has signed in. */
  token?: () => string | null;
  /** The server no longer accepts the token. */
  onUnauthorized?: () => void;
  /** How to wait before a retry: a browser's wait ends when the network is back. */
  pause?: Pause;
}

export interface ApiRequest {
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  query?: Record<string, string | number | boolean | null | undefined>;
  /** Sent as JSON. */
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export class ApiClient {
  readonly pause: Pause;

  constructor(private readonly options: ApiClientOptions) {
    this.pause = options.pause ?? pause;
  }

  url(path: string, query: ApiRequest["query"] = {}): URL {
    const url = new URL(path.replace(/^\//, ""), this.options.baseUrl());
    url.hash = "";
    for (const [name, value] of Object.entries(query))
      if (value !== null && value !== undefined) url.searchParams.set(name, String(value));
    return url;
  }

  /** The response to a request; throws an `ApiError` if the server refuses it, and `Unreachable` if none arrives. */
  async request(path: string, { method = "GET", query, body, headers: extra, signal }: ApiRequest = {}): Promise<Response> {
    const headers: Record<string, string> = { Accept: "application/json", ...extra };
    const token = this.#token();
    if (token) headers["Authorization"] = `Bearer ${token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let response: Response;
    try {
      response = await fetch(this.url(path, query), {
        method,
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        signal: signal ?? null,
        cache: "no-store",
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new Unreachable(String(error));
    }
    // The response belongs to a user who has signed out since.
    if (this.#token() !== token) throw new Unreachable("signed out");
    if (response.status === 401) this.options.onUnauthorized?.();
    if (!response.ok)
      throw errorFrom(response.status, await textOf(response), response.statusText, response.headers.get("Retry-After"));
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

  #token(): string | null {
    return this.options.token?.() ?? null;
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
