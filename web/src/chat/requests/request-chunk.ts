/** What a turn asks its user: loaded when a conversation has such a request. */

import "../../styles/requests.css";

export { AllowedTools } from "../../overlays/allowed-tools";
export { ApprovalsBell } from "./approvals-bell";
export { Request } from "./request";
