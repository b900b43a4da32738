import { type Segment } from "../../turn/segments";
import { CallApproval } from "./call-approval";
import { ClientRequest } from "./client-request";
import { QuestionCard } from "./question-card";
import { type Decide } from "./use-decision";

export interface RequestProps {
  agentId: string | undefined;
  segment: Extract<Segment, { kind: "approval" | "client_request" | "question" }>;
  /** Whether its turn runs or waits: only then can the user decide. */
  running: boolean;
  onDecide: Decide;
}

/** A request for approval, for another app, or a question. */
export function Request({ agentId, segment, running, onDecide }: RequestProps) {
  if (segment.kind === "approval") return <CallApproval agentId={agentId} call={segment.call} running={running} onDecide={onDecide} />;
  if (segment.kind === "client_request") return <ClientRequest call={segment.call} running={running} onDecide={onDecide} />;
  const { question, asker } = segment;
  return <QuestionCard agentId={agentId} question={question} asker={asker} isOpen={running && question.answer === undefined} onDecide={onDecide} />;
}
