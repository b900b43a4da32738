/** What follows when the server will never accept what a tool returned. Pure. */

import { type ApiError } from "./errors.ts";
import { type AnswerBody } from "./schema.ts";

/** Nobody waits for it any more: it is answered, has expired, or its turn is over. */
const SETTLED = new Set([404, 409, 410]);

/** What to answer in place of a result that was refused; null if nothing. */
export function refusedResult({ status, message }: ApiError): AnswerBody | null {
  return SETTLED.has(status) ? null : { action: "result", error: `The tool has run, but the server refused its result: ${message}` };
}
