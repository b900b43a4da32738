/** What a turn asks its user: loaded when a conversation has such a request. */

export { CallApproval } from "./call-approval";
export { ClientRequest } from "./client-request";
export { QuestionCard } from "./question-card";
