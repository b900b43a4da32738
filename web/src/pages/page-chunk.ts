/** The pages beside the conversation: loaded when the user goes there. */

import "../styles/button-link.css";
import "../styles/page-chunk.css";

export { AgentPage } from "../agents/agent-page";
export { AgentsPage } from "../agents/agents-page";
export { GatewaysPage } from "../gateways/gateways-page";
export { ImportPage } from "../imports/import-page";
export { KeysPage } from "../keys/keys-page";
export { MemoryPage } from "../memory/memory-page";
export { RunningPage } from "../running/running-page";
export { UsersPage } from "../users/users-page";
export { ArchivePage } from "./archive-page";
export { BriefingsPage } from "./briefings-page";
export { ConversationsPage } from "./conversations-page";
export { DeletedPage } from "./deleted-page";
export { MissingPage } from "../chat/missing-page";
export { SettingsPage } from "./settings-page";
export { UsagePage } from "./usage-page";
