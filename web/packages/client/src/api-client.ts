/** Asks our server. Addresses are relative to the page, which may be mounted below a path. */

import { type ErrorAnswer } from "./schema";
import { Store } from "../../../src/state/store";

/** The server refused, and says why. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details: unknown = null,
    /** The field that it is about. */
    readonly param: string | null = null,
    /** When to try again, if the server says so. */
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
  }
}

/** The server cannot be reached. */
export class Unreachable extends Error {}

const TOKEN = "threadkeep.token";

/** The token of the user who signed in: in memory and for this tab; open tabs share it. */
export const token = new Store<string | null>(sessionStorage.getItem(TOKEN));

export function setToken(value: string | null): void {
  if (value === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, value);
  token.set(value);
}

const GIVEN = /^#token=([\w.~+/=-]+)$/;

/** Keeps the token that `threadkeep open` put into the address, and removes it from there; false if there is none. */
export function takeGivenToken(): boolean {
  const given = GIVEN.exec(location.hash)?.[1];
  if (given === undefined) return false;
  history.replaceState(null, "", location.pathname + location.search);
  setToken(given);
  return true;
}

let signedOut = () => {};

/** Calls `listener` when the server no longer accepts our token. */
export function whenSignedOut(listener: () => void): void {
  signedOut = listener;
}

export interface Request {
  method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  query?: Record<string, string | number | boolean | null | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export function address(path: string, query: Request["query"] = {}): URL {
  const url = new URL(path.replace(/^\//, ""), document.baseURI);
  url.hash = "";
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined) url.searchParams.set(name, String(value));
  return url;
}

/** The answer to a request; an error answer is thrown. */
export async function ask(path: string, request: Request = {}): Promise<Response> {
  const headers: Record<string, string> = { Accept: "application/json", ...request.headers };
  const held = token.get();
  if (held) headers["Authorization"] = `Bearer ${held}`;
  let body: BodyInit | null = null;
  if (request.body instanceof FormData) body = request.body;
  else if (request.body !== undefined) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(request.body);
  }
  let answer: Response;
  try {
    answer = await fetch(address(path, request.query), {
      method: request.method ?? "GET",
      headers,
      body,
      signal: request.signal ?? null,
      cache: "no-store",
    });
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new Unreachable(String(error));
  }
  // It is for a user who has signed out since.
  if (token.get() !== held) throw new Unreachable("signed out");
  whenRefused(answer.status);
  if (!answer.ok) throw refusalIn(answer.status, await textOf(answer), answer.statusText, answer.headers.get("Retry-After"));
  return answer;
}

/** What an error answer says; nothing if it broke off. */
async function textOf(answer: Response): Promise<string> {
  return answer.text().catch(() => "");
}

/** The JSON of an answer. */
export async function get<T>(path: string, query?: Request["query"], signal?: AbortSignal): Promise<T> {
  return jsonOf<T>(await ask(path, { query, signal }), signal);
}

export async function send<T>(
  method: "POST" | "PUT" | "PATCH" | "DELETE",
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
  signal?: AbortSignal,
): Promise<T> {
  const answer = await ask(path, { method, body, headers, signal });
  return answer.status === 204 ? (undefined as T) : jsonOf<T>(answer, signal);
}

async function jsonOf<T>(answer: Response, signal?: AbortSignal): Promise<T> {
  try {
    return (await answer.json()) as T;
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Unreachable(String(error)); // it broke off, or is somebody else's page
  }
}

/** Signs out when the server no longer accepts our token. */
export function whenRefused(status: number): void {
  if (status === 401) signedOut();
}

/** The error in an answer. */
export function refusalIn(status: number, body: string, otherwise = "", retryAfter: string | null = null): ApiError | Unreachable {
  try {
    const { error } = JSON.parse(body) as ErrorAnswer;
    const seconds = Number(retryAfter ?? NaN);
    return new ApiError(status, error.code, error.message, error.details, error.param, seconds >= 0 ? seconds * 1000 : null);
  } catch {
    // A proxy's own page: the server behind it is unreachable.
    if (status >= 502) return new Unreachable(`${status}`);
    return new ApiError(status, "INTERNAL_ERROR", otherwise || String(status));
  }
}

/** A unique request id; `randomUUID` is missing without TLS. */
export function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (it) => it.toString(16).padStart(2, "0")).join("");
}
