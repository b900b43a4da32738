/** A turn's requests to its user, from its parts. Pure. */

import { type CallApprovalView } from "../schema.ts";
import { type Part, type PartOf } from "./parts.ts";

/** An approval of a tool call, or a question. */
export type TurnRequest = CallApprovalView | PartOf<"question">;

export function requestOf(part: Part): TurnRequest | undefined {
  if (part.type === "question") return part;
  return part.type === "tool_call" ? part.approval : undefined;
}

function isOpen(part: Part): boolean {
  if (part.superseded) return false;
  if (part.type === "question") return part.answer === undefined;
  return part.type === "tool_call" && part.status === "running" && part.approval !== undefined && part.approval.action === undefined;
}

/** The unanswered requests. */
export function openRequests(parts: readonly Part[]): TurnRequest[] {
  return parts.filter(isOpen).flatMap((part) => requestOf(part) ?? []);
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
