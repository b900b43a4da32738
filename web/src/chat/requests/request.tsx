import { CallApproval } from "./call-approval";
import { ClientRequest } from "./client-request";
import { type RequestProps } from "./lazy-request";
import { QuestionCard } from "./question-card";

/** A request for approval, for another app, or a question. */
export function Request({ agentId, segment, running, onDecide }: RequestProps) {
  if (segment.kind === "approval") return <CallApproval agentId={agentId} call={segment.call} running={running} onDecide={onDecide} />;
  if (segment.kind === "client_request") return <ClientRequest call={segment.call} running={running} onDecide={onDecide} />;
  const { question, asker } = segment;
  return <QuestionCard agentId={agentId} question={question} asker={asker} isOpen={running && question.answer === undefined} onDecide={onDecide} />;
}
