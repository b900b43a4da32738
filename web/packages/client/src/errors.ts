/** How a request fails: the server refuses it, or cannot be reached. */

import { type ApprovalView, type ErrorResponse } from "./schema.ts";

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
    /** What the server's log calls the request. */
    readonly requestId: string | null = null,
  ) {
    super(message);
  }
}

/** The server cannot be reached. */
export class Unreachable extends Error {}

/** The turn asks its user, and goes on when all its requests are answered. */
export class TurnWaiting extends Error {
  constructor(
    readonly turnId: string,
    readonly approvals: readonly ApprovalView[],
  ) {
    super(`The turn waits for its user: ${approvals.map(({ message }) => message).join("; ")}`);
  }
}

/** The message began no turn: it waits until others have had theirs. */
export class MessageQueued extends Error {
  constructor(readonly messageId: string) {
    super("The message is queued.");
  }
}

/** Whether a request was given up by who made it. */
export function isAborted(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}

/** The code of an error response without one: a proxy sent it, or a network that wants a sign-in. */
export const NO_CODE = "INTERNAL_ERROR";

/** The error in an error response. */
export function errorFrom(status: number, body: string, statusText = "", retryAfter: string | null = null): ApiError | Unreachable {
  try {
    const { error } = JSON.parse(body) as ErrorResponse;
    const seconds = Number(retryAfter ?? NaN);
    const retryAfterMs = seconds >= 0 ? seconds * 1000 : null;
    return new ApiError(status, error.code, error.message, error.details, error.param, retryAfterMs, error.requestId || null);
  } catch {
    // A proxy's own page: the server behind it is unreachable.
    if (status >= 502) return new Unreachable(`${status}`);
    return new ApiError(status, NO_CODE, statusText || String(status));
  }
}

/** The file that the server does not have, if it refused for that reason. */
export function missingFileIn(error: unknown): string | null {
  if (!(error instanceof ApiError) || error.code !== "FILE_NOT_FOUND") return null;
  return (error.details as { fileId?: string } | null)?.fileId ?? null;
}

/** Who keeps the user out, if that is why nobody is signed in. */
export function suspenderIn(error: unknown): "admin" | "provider" | null {
  if (!(error instanceof ApiError) || error.status !== 401) return null;
  return (error.details as { suspendedBy?: "admin" | "provider" } | null)?.suspendedBy ?? null;
}

/** Why something did not work, as a front end keeps it. */
export interface Problem {
  code: string;
  message: string;
  /** The file that the server does not have. */
  fileId?: string;
  /** What the server's log calls the request, if the fault is the server's. */
  requestId?: string;
}

/** The problem of a message that could not be sent; any other error is thrown on. */
export function problemOf(error: unknown): Problem {
  if (error instanceof ApiError) {
    const { code, message, status, requestId } = error;
    const fileId = missingFileIn(error);
    return { code, message, ...(fileId && { fileId }), ...(status >= 500 && requestId && { requestId }) };
  }
  if (error instanceof Unreachable) return { code: "UNREACHABLE", message: error.message };
  throw error;
}

/** The problem of a request that sends no message: no text can be lost. */
export function requestProblemOf(error: unknown): Problem {
  return error instanceof Unreachable ? { code: "SERVER_UNREACHABLE", message: error.message } : problemOf(error);
}
