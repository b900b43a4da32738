/** A turn's requests to its user and their client, from its parts. Pure. */

import { type CallApprovalView } from "../schema.ts";
import { type Part, type PartOf } from "./parts.ts";

/** An approval of a tool call, a client's run of one, or a question. */
export type TurnRequest = CallApprovalView | PartOf<"question">;

/** The latest request about a part: a call that the user has allowed may go to the client next. */
export function requestOf(part: Part): TurnRequest | undefined {
  if (part.type === "question") return part;
  return part.type === "tool_call" ? (part.clientRequest ?? part.approval) : undefined;
}

function isOpen(part: Part): boolean {
  if (part.superseded) return false;
  if (part.type === "question") return part.answer === undefined;
  if (part.type !== "tool_call" || part.status !== "running") return false;
  const request = part.clientRequest ?? part.approval;
  return request !== undefined && request.action === undefined;
}

/** The unanswered requests. */
export function openRequests(parts: readonly Part[]): TurnRequest[] {
  return parts.filter(isOpen).flatMap((part) => requestOf(part) ?? []);
}

/** The calls that a client is to run. */
export function openClientCalls(parts: readonly Part[]): (PartOf<"tool_call"> & { clientRequest: CallApprovalView })[] {
  return parts.filter((part): part is PartOf<"tool_call"> & { clientRequest: CallApprovalView } =>
    part.type === "tool_call" && part.clientRequest !== undefined && isOpen(part),
  );
}

/** The calls that wait for the user: for an approval, or for the answer to a question of their tool. */
export function waitingCalls(parts: readonly Part[]): ReadonlySet<string> {
  return new Set(parts.filter(isOpen).flatMap((part) => ("toolCallId" in part && part.toolCallId ? [part.toolCallId] : [])));
}

/** Whether nothing happens before the user answers: no other tool is at work. */
export function waitsForUser(parts: readonly Part[]): boolean {
  if (!parts.some(isOpen)) return false;
  const waiting = waitingCalls(parts);
  return parts.every(
    (part) => part.type !== "tool_call" || part.superseded || part.status !== "running" || waiting.has(part.toolCallId),
  );
}
