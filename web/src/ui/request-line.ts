import { type ApprovalView } from "@threadkeep/client";

import { type RequestWords } from "../words/requests";

/** What a request of an agent asks, in a line in which names of tools stand between backticks. */
export function requestLine(requestWords: RequestWords, { kind, toolName, server = "", message }: ApprovalView, agent: string): string {
  return kind === "tool" && toolName ? requestWords.allowCall(agent, toolName, server) : message;
}
