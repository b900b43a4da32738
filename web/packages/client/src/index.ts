/** Everything that a front end may use. */

export type * from "./schema";
export { ApiClient, freshKey, type ApiClientOptions, type ApiRequest } from "./api-client";
export { ApiError, Unreachable, errorFrom, problemOf, requestProblemOf, type Problem } from "./errors";
export { addCosts } from "./money";
export { pause, type Pause } from "./pause";
export { Store } from "./store";

// Streams.
export { ConversationSocket, type ConversationChange } from "./socket";
export { followUserEvents, type UserEvent, type UserEventListener } from "./user-events";
export { followTurn, type TurnFollower } from "./turn/follow";
export { rerunTurn } from "./turn/rerun";

// A turn: its events, and the reply that they become.
export { type EventUsage, type TurnEvent } from "./turn/events";
export { fold, foldAll, startReply, type LiveReply, type ToolProgress } from "./turn/fold";
export { citationsOf, contentOf, hitsOf, isBlank, type Message, type Part, type PartOf } from "./turn/parts";
export { filePart, filePath, filesOf, imagesOf, isImage, isMeasuredImage, kindOf, type KeptFile } from "./turn/files";
export { openRequests, waitingCalls, waitsForUser, type TurnRequest } from "./turn/requests";

// A conversation.
export { Thread, type ThreadOptions } from "./thread/thread";
export { reduce, type ThreadAction } from "./thread/reduce";
export { EMPTY_THREAD, PATH_CHANGED, isBusy, isLocalId, isRunning, isWaiting, localId, type PendingMessage, type ThreadState } from "./thread/state";
export { keyOf } from "./thread/path";
export { Batches, type BatchOptions } from "./thread/batches";

// What the user has sent and the server does not have yet.
export { Outbox, type OutboxOptions } from "./outbox/outbox";
export { type OutboxEvent } from "./outbox/delivery";
export { canWithdraw, itemsIn, type OutboxItem } from "./outbox/entries";
export { shownFile, type OutboxEntry, type OutgoingDecision, type OutgoingFile, type OutgoingMessage } from "./outbox/entry";
export { type EntryStore, type OtherTabs, type OutboxTabMessage, type OutboxTransport, type SentView, type StoredEntry } from "./outbox/ports";
export { serverTransport, type ServerTransportOptions } from "./outbox/server-transport";
