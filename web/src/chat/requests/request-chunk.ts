/** What a turn asks its user: loaded when a conversation has such a request. */

export { CallApproval } from "./call-approval";
export { QuestionCard } from "./question-card";
