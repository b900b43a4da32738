/** The pages beside the conversation: loaded when one goes there. */

export { AgentPage } from "./agent-page";
export { BriefingsPage } from "./briefings-page";
export { UsagePage } from "./usage-page";
