/** The pages beside the conversation: loaded when one goes there. */

export { AgentPage } from "./agent-page";
export { ArchivePage } from "./archive-page";
export { BriefingsPage } from "./briefings-page";
export { DeletedPage } from "./deleted-page";
export { UsagePage } from "./usage-page";
