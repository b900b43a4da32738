/** Everything that a front end may use. */

export type * from "./schema.ts";
export { ApiClient, freshKey, type ApiClientOptions, type ApiRequest, type Fetch } from "./api-client.ts";
export { ApiError, MessageQueued, TurnWaiting, Unreachable, problemOf, requestProblemOf, suspenderIn, type Problem } from "./errors.ts";
export { addCosts } from "./money.ts";
export { pause, type Pause } from "./pause.ts";
export { Store } from "./store.ts";

// For programs.
export { Client, type ClientFollowOptions, type ClientSendOptions } from "./client.ts";

// A front end as a whole.
export { FrontEnd, type FrontEndOptions } from "./front-end.ts";
export { ClientTools, type ClientTool, type ClientToolCall } from "./client-tools.ts";
export { type OnReturn, type Platform } from "./platform.ts";
export { type Copies } from "./copies.ts";
export { ConversationList, type ConversationListState } from "./lists/conversation-list.ts";
export { OpenApprovals } from "./lists/open-approvals.ts";

// Streams.
export { UserEvents, followUserEvents, type UserEvent, type UserEventListener } from "./user-events.ts";
export { followTurn, turnEvents, type FollowOptions, type TurnFollower } from "./turn/follow.ts";
export { rerunTurn } from "./turn/rerun.ts";

// A turn: its events, and the reply that they become.
export { type EventUsage, type TurnEvent } from "./turn/events.ts";
export { fold, foldAll, startReply, type LiveReply, type ToolProgress } from "./turn/fold.ts";
export { citationsOf, contentOf, hitsOf, isBlank, type Message, type Part, type PartOf } from "./turn/parts.ts";
export { filePart, filePath, filesOf, imagesOf, isImage, isMeasuredImage, kindOf, uploadFile, type KeptFile } from "./turn/files.ts";
export { openClientCalls, openRequests, waitingCalls, waitsForUser, type TurnRequest } from "./turn/requests.ts";

// A conversation.
export { Thread, type ThreadOptions } from "./thread/thread.ts";
export { reduce, type ThreadAction } from "./thread/reduce.ts";
export { EMPTY_THREAD, PATH_CHANGED, isBusy, isLocalId, isRunning, isWaiting, localId, type PendingMessage, type ThreadState } from "./thread/state.ts";
export { keyOf } from "./thread/path.ts";
export { Batches, type BatchOptions } from "./thread/batches.ts";

// What the user has sent and the server does not have yet.
export { Outbox, type OutboxOptions } from "./outbox/outbox.ts";
export { type OutboxEvent } from "./outbox/delivery.ts";
export { canWithdraw, itemsIn, type OutboxItem } from "./outbox/entries.ts";
export { outgoingFile, shownFile, type OutboxEntry, type OutgoingDecision, type OutgoingFile, type OutgoingMessage } from "./outbox/entry.ts";
export { type EntryStore, type OtherTabs, type OutboxTabMessage, type OutboxTransport, type SentView, type StoredEntry } from "./outbox/ports.ts";
export { MemoryStore } from "./outbox/memory-store.ts";
export { serverTransport, type ServerTransportOptions } from "./outbox/server-transport.ts";
