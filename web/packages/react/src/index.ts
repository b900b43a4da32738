/** Everything that a React application may use; the rest is in `@threadkeep/client`. */

export { ThreadkeepProvider, useFrontEnd } from "./provider.tsx";
export { useApprovals } from "./use-approvals.ts";
export { useClientTool } from "./use-client-tool.ts";
export { useConversation, type ConversationOptions, type ConversationSendOptions } from "./use-conversation.ts";
export { useConversations } from "./use-conversations.ts";
export { useSelected, useStore } from "./use-store.ts";
export { useThread } from "./use-thread.ts";
