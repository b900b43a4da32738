// Made from the OpenAPI document by scripts/page_types.py; do not edit.

/** What the server can be asked. */
export const ROUTES = new Set<string>([
  "GET /api/me",
  "GET /api/me/events",
  "DELETE /api/users/{user_id}",
  "POST /api/agents",
  "GET /api/agents",
  "GET /api/agents/{agent_id}",
  "PATCH /api/agents/{agent_id}",
  "DELETE /api/agents/{agent_id}",
  "POST /api/agents/{agent_id}/duplicate",
  "POST /api/agents/{agent_id}/mcp-servers/{name}/test",
  "GET /api/agents/{agent_id}/prompt",
  "PUT /api/agents/{agent_id}/prompt/{component}",
  "POST /api/agents/{agent_id}/documents",
  "GET /api/agents/{agent_id}/documents",
  "GET /api/agents/{agent_id}/documents/{document_id}",
  "DELETE /api/agents/{agent_id}/documents/{document_id}",
  "POST /api/agents/{agent_id}/documents/{document_id}/retry",
  "GET /api/agents/{agent_id}/search",
  "POST /api/agents/{agent_id}/conversations",
  "GET /api/agents/{agent_id}/conversations",
  "PUT /api/agents/{agent_id}/conversation",
  "GET /api/conversations",
  "GET /api/conversations/{conversation_id}",
  "PATCH /api/conversations/{conversation_id}",
  "DELETE /api/conversations/{conversation_id}",
  "POST /api/conversations/{conversation_id}/restore",
  "POST /api/conversations/{conversation_id}/session",
  "GET /api/conversations/{conversation_id}/messages",
  "POST /api/conversations/{conversation_id}/messages",
  "GET /api/approvals",
  "POST /api/turns/{turn_id}/approvals/{request_id}",
  "PATCH /api/conversations/{conversation_id}/queued/{message_id}",
  "DELETE /api/conversations/{conversation_id}/queued/{message_id}",
  "POST /api/conversations/{conversation_id}/regenerate",
  "POST /api/conversations/{conversation_id}/path",
  "POST /api/conversations/{conversation_id}/fork",
  "POST /api/conversations/{conversation_id}/abort",
  "POST /api/conversations/{conversation_id}/executions",
  "GET /api/turns/{turn_id}",
  "GET /api/turns/{turn_id}/events",
  "GET /api/turns/{turn_id}/context",
  "GET /api/conversations/{conversation_id}/context",
  "POST /api/conversations/{conversation_id}/compact",
  "GET /api/conversations/{conversation_id}/compactions",
  "DELETE /api/conversations/{conversation_id}/compactions/{compaction_id}",
  "POST /api/briefings",
  "GET /api/briefings",
  "POST /api/briefings/{briefing_id}/actions/start_conversation",
  "POST /api/briefings/{briefing_id}/read",
  "DELETE /api/briefings/{briefing_id}",
  "POST /api/chat",
  "GET /api/chat/messages",
  "GET /api/tool-results",
  "GET /api/conversations/{conversation_id}/tool-results",
  "GET /api/conversations/{conversation_id}/report",
  "GET /api/conversations/{conversation_id}/export",
  "GET /api/artifacts/{artifact_id}",
  "POST /api/files",
  "GET /api/files/{file_id}",
  "GET /api/search",
  "GET /api/usage",
  "GET /api/admin/turns",
  "POST /api/admin/turns/{turn_id}/abort",
  "GET /api/admin/audit",
  "GET /healthz",
  "GET /readyz",
]);

/** What was stopped; `IDLE` when nothing ran. */
export interface AbortView {
  status: "GENERATION_ABORTED" | "IDLE";
  turnId?: string | null;
  messageId?: string | null;
  content?: string | null;
}

/** An agent to be made. */
export interface AgentBody {
  name: string;
  description?: string;
  primaryRoleId?: string;
  systemPrompt?: string;
  model?: string | null;
  visibility?: Visibility;
  settings?: AgentSettingsBody;
}

/** An agent with all its MCP servers, for its owner and admins: the system's, built-in and own ones. */
export interface AgentDetailView {
  id: string;
  name: string;
  description: string;
  visibility: Visibility;
  isDefault: boolean;
  createdAt: string;
  updatedAt: string;
  ownerId: string | null;
  primaryRoleId?: string;
  systemPrompt?: string;
  model?: string | null;
  settings?: AgentSettingsView;
  version?: number;
  mcpServers?: McpServerView[];
}

/** What to change: a JSON merge patch (RFC 7396), in which null means the default. */
export interface AgentPatch {
  name?: string;
  description?: string | null;
  primaryRoleId?: string | null;
  systemPrompt?: string | null;
  model?: string | null;
  visibility?: Visibility | null;
  settings?: Record<string, unknown> | null;
}

/** An agent's limits and habits; 0 means no limit. */
export interface AgentSettingsBody {
  retrievalTopK?: number;
  retrievalThreshold?: number;
  retrievalMode?: RetrievalMode;
  contextMessages?: number;
  contextThoughts?: boolean;
  maxMessageChars?: number;
  maxIterations?: number;
  generationTimeoutS?: number;
  conversationMode?: ConversationMode;
  compactionThreshold?: number;
  autoCompact?: boolean;
  temperature?: number | null;
  maxTokens?: number | null;
  toolResultTokens?: number;
  mcpServers?: Record<string, {   type?: "http" | "stdio" | "streamable-http" | null;   command?: string | null;   args?: string[];   env?: Record<string, string>;   cwd?: string | null;   url?: string | null;   headers?: Record<string, string>;   disabled?: boolean;   timeoutS?: number;   scope?: "agent" | "conversation" | "user";   trustAnnotations?: boolean; }>;
  onCrash?: OnCrash;
  approvalTimeoutS?: number;
  askUser?: boolean;
  tools?: Record<string, {   access?: "allow" | "ask" | "deny" | null;   effect?: "idempotent" | "read" | "write" | null; }>;
}

/** An agent's limits and habits; 0 means no limit. */
export interface AgentSettingsView {
  retrievalTopK: number;
  retrievalThreshold: number;
  retrievalMode: RetrievalMode;
  contextMessages: number;
  contextThoughts: boolean;
  maxMessageChars: number;
  maxIterations: number;
  generationTimeoutS: number;
  conversationMode: ConversationMode;
  compactionThreshold: number;
  autoCompact: boolean;
  temperature: number | null;
  maxTokens: number | null;
  toolResultTokens: number;
  mcpServers: Record<string, McpServerSettingsView>;
  onCrash: OnCrash;
  approvalTimeoutS: number;
  askUser: boolean;
  tools: Record<string, ToolRuleView>;
}

/** An agent. Its prompt, model and settings are shown to its owner and to admins only.

    `ownerId` is null for the default agent, which nobody owns. */
export interface AgentView {
  id: string;
  name: string;
  description: string;
  visibility: Visibility;
  isDefault: boolean;
  createdAt: string;
  updatedAt: string;
  ownerId: string | null;
  primaryRoleId?: string;
  systemPrompt?: string;
  model?: string | null;
  settings?: AgentSettingsView;
  version?: number;
}

/** What the user says. */
export interface AnswerBody {
  action: "allow" | "answer" | "deny" | "edit";
  scope?: ApprovalScope;
  arguments?: Record<string, unknown> | null;
  content?: unknown;
}

/** What the user answered. */
export interface AnswerView {
  action: ApprovalAction;
  at: string;
  content?: unknown;
}

/** How a request ended; nobody but the clock chooses `expire`. */
export type ApprovalAction = "allow" | "answer" | "deny" | "edit" | "expire";

/** What a turn waits for: leave to call a tool, an answer for the model, or one for an MCP server. */
export type ApprovalKind = "elicitation" | "question" | "tool";

/** How far leave goes: this call, or every call of this tool in the conversation. */
export type ApprovalScope = "conversation" | "once";

/** Something a turn asks its user; it waits until they answer, or the time is over. */
export interface ApprovalView {
  requestId: string;
  turnId: string;
  conversationId: string;
  kind: ApprovalKind;
  message: string;
  createdAt: string;
  expiresAt: string;
  toolCallId?: string;
  toolName?: string;
  server?: string;
  arguments?: Record<string, unknown>;
  schema?: Record<string, unknown>;
  url?: string;
}

/** What one's turns wait for, oldest first. */
export interface ApprovalsView {
  items: ApprovalView[];
}

/** Who changed which agent, and which of its fields. */
export interface AuditEntryView {
  id: string;
  at: string;
  actorId: string;
  action: string;
  agentId: string | null;
  details: Record<string, unknown>;
}

/** A briefing to be sent. */
export interface BriefingBody {
  agentId: string;
  userId: string;
  title: string;
  summary: string;
  priority: Priority;
  data?: Record<string, unknown> | null;
  actions?: Record<string, unknown>[];
}

/** A briefing shown in a conversation. */
export interface BriefingCardView {
  briefingId: string;
  title: string;
  summary: string;
  priority: string;
  sentAt: string;
  data: Record<string, unknown> | null;
  actions: Record<string, unknown>[];
}

/** A notice of an agent. `messageId` is its card in the conversation, once there is one. */
export interface BriefingView {
  id: string;
  agentId: string;
  domainId: string;
  userId: string;
  title: string;
  summary: string;
  priority: Priority;
  data: Record<string, unknown> | null;
  actions: Record<string, unknown>[];
  messageId: string | null;
  createdAt: string;
  readAt: string | null;
}

/** What the user was asked about a tool call; without `action` while it waits. */
export interface CallApprovalView {
  requestId: string;
  message: string;
  expiresAt: string;
  action?: ApprovalAction;
  scope?: ApprovalScope;
  at?: string;
  arguments?: Record<string, unknown>;
}

/** A briefing shown in a conversation. */
export interface CardPartView {
  type: "card";
  briefingId: string;
  title: string;
  summary: string;
  priority: string;
  sentAt: string;
  data: Record<string, unknown> | null;
  actions: Record<string, unknown>[];
  iteration: number;
  superseded?: boolean;
}

/** What a user says. */
export interface ChatBody {
  content?: string | null;
  files?: string[];
}

/** A source; they are numbered in the order in which they come. */
export interface CitationBody {
  title: string;
  snippet?: string;
  score?: number;
  url?: string | null;
  fileName?: string | null;
  documentId?: string | null;
  page?: number | null;
}

/** One source that the answer refers to as [index]. */
export interface CitationView {
  index: number;
  title: string;
  snippet: string;
  score: number;
  url?: string | null;
  fileName?: string | null;
  documentId?: string | null;
  page?: number | null;
}

/** How to compact. */
export interface CompactBody {
  keepLast?: number | null;
}

/** A summary that stands in the context for the messages `fromSeq` to `toSeq`, which stay archived. */
export interface CompactionView {
  id: string;
  summary: string;
  archivedCount: number;
  fromSeq: number;
  toSeq: number;
  tokensBefore: number;
  tokensAfter: number;
  createdAt: string;
}

/** A component's new text; an empty one removes it. */
export interface ComponentBody {
  text: string;
}

/** A part of the system prompt. `text` is shown to the agent's owner and to admins only. */
export interface ComponentReceiptView {
  name: string;
  sha256: string;
  length: number;
  truncated: boolean;
  text?: string;
}

/** What the content is: a text, or a briefing shown as a card. */
export type ContentType = "briefing_card" | "text";

/** One entry of a model's history. */
export interface ContextMessageView {
  role: string;
  content: string;
}

/** The latest messages, ready to send to a model; the summary of archived ones stands first. */
export interface ContextView {
  messages: ContextMessageView[];
}

/** A conversation to be made. */
export interface ConversationBody {
  title?: string | null;
  metadata?: Record<string, unknown>;
}

/** A conversation with its latest messages, oldest first; `nextCursor` leads to the older ones. */
export interface ConversationDetailView {
  id: string;
  agentId: string;
  domainId: string;
  userId: string;
  title: string | null;
  status: ListedStatus;
  isMain: boolean;
  pinned: boolean;
  metadata: Record<string, unknown>;
  activeTurnId: string | null;
  messageCount: number;
  startedAt: string;
  createdAt: string;
  updatedAt: string;
  lastMessageAt: string | null;
  deletedAt?: string;
  purgeAt?: string;
  sessionId?: string;
  messages: MessageView[];
  nextCursor: string | null;
  summary: string | null;
  queued: QueuedMessageView[];
}

/** Whether a user may have further conversations beside the main one. */
export type ConversationMode = "multiple" | "single";

/** What to change: a JSON merge patch. A null `title` forgets the user's own. */
export interface ConversationPatch {
  title?: string | null;
  status?: ConversationStatus;
  pinned?: boolean;
  metadata?: Record<string, unknown> | null;
}

/** Whether the owner keeps it at hand or has put it away. */
export type ConversationStatus = "active" | "archived";

/** A conversation without its messages. `sessionId` is given on create and detail only.

    A list of deleted ones has `deletedAt`, and `purgeAt`: until then each can be restored. */
export interface ConversationView {
  id: string;
  agentId: string;
  domainId: string;
  userId: string;
  title: string | null;
  status: ListedStatus;
  isMain: boolean;
  pinned: boolean;
  metadata: Record<string, unknown>;
  activeTurnId: string | null;
  messageCount: number;
  startedAt: string;
  createdAt: string;
  updatedAt: string;
  lastMessageAt: string | null;
  deletedAt?: string;
  purgeAt?: string;
  sessionId?: string;
}

/** One's turns with one agent on one day (UTC); `estimated` where some numbers are.

    `inputTokens` counts all of the input: `cacheReadTokens` is how much of it the provider had in its cache. */
export interface DayUsageView {
  date: string;
  agentId: string;
  turns: number;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  estimated: boolean;
}

/** A document is worked on, then ready or failed; a failed one can be retried. */
export type DocumentStatus = "failed" | "processing" | "ready";

/** A document: `ready` to be searched, still `processing`, or `failed` with the reason. */
export interface DocumentView {
  id: string;
  agentId: string;
  fileName: string;
  mediaType: string;
  size: number;
  status: DocumentStatus;
  progress: number;
  chunkCount: number;
  error: string | null;
  createdAt: string;
  updatedAt: string;
}

/** The documents that the files became; a file that was there already is the document it was. */
export interface DocumentsView {
  items: DocumentView[];
}

/** Every error has this shape. */
export interface ErrorAnswer {
  error: ErrorBody;
}

/** What went wrong. */
export interface ErrorBody {
  code: string;
  message: string;
  requestId: string;
  param?: string | null;
  details?: unknown;
}

/** What was asked, and what was done to answer it. */
export interface ExchangeView {
  asked: MessageView | null;
  answered: MessageView | null;
}

/** A tool that a node has used. */
export interface ExecutedToolBody {
  toolName: string;
  arguments?: Record<string, unknown>;
  server?: string;
  result?: unknown;
  error?: string | null;
  status?: ToolCallStatus;
  durationMs?: number | null;
  toolCallId?: string | null;
}

/** One event of a run. `ExecutionStarted` has the user's `input`, `NodeCompleted` its `node`,
    `ExecutionCompleted` the `output`, `ExecutionFailed` the `error`. */
export interface ExecutionEventBody {
  id: string;
  type: ExecutionEventType;
  runId: string;
  at: number;
  input?: string | null;
  node?: string | null;
  detail?: string;
  durationMs?: number;
  tools?: ExecutedToolBody[];
  output?: string;
  citations?: CitationBody[];
  artifactIds?: string[];
  usage?: ExecutionUsageBody | null;
  model?: string | null;
  error?: string | null;
}

/** What an engine tells of a run. */
export type ExecutionEventType = "ExecutionCancelled" | "ExecutionCompleted" | "ExecutionFailed" | "ExecutionStarted" | "NodeCompleted";

/** Tokens that were spent. */
export interface ExecutionUsageBody {
  inputTokens: number;
  outputTokens: number;
  estimated?: boolean;
}

/** Events of one or more runs. */
export interface ExecutionsBody {
  events: ExecutionEventBody[];
}

/** A whole conversation. */
export interface ExportView {
  conversation: ConversationView;
  messages: MessageView[];
  exportedAt: string;
}

/** Why a message failed. */
export interface FailureView {
  code: string;
  message: string;
  retryable: boolean;
}

/** A file that the user attached, an image that a tool returned, or what another engine's run produced. */
export interface FilePartView {
  type: "file";
  fileId: string;
  fileName: string;
  mediaType: string;
  size: number;
  iteration: number;
  width?: number | null;
  height?: number | null;
  pages?: number | null;
  toolCallId?: string | null;
  superseded?: boolean;
}

/** A file that a tool gave; `GET /api/artifacts/{id}` downloads it. */
export interface FileView {
  artifactId: string;
  fileName: string;
  mediaType: string;
  size: number;
}

/** Where to fork. */
export interface ForkBody {
  messageId: string;
}

/** How the server is. */
export interface HealthView {
  status: string;
  version: string;
}

/** Where a word that was looked for stands, in characters. */
export interface HighlightView {
  begin: number;
  end: number;
}

/** A piece of a document that was found. */
export interface HitView {
  chunkId: string;
  documentId: string;
  source: string;
  page: number | null;
  heading: string | null;
  text: string;
  score: number;
}

/** What was found, best first. */
export interface HitsView {
  items: HitView[];
  notice: string | null;
}

/** How lists show it: as the owner keeps it, or as deleted, until it is purged. */
export type ListedStatus = "active" | "archived" | "deleted";

/** A server as its owner has set it: a program (`command`) or an address (`url`). */
export interface McpServerSettingsView {
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  url?: string;
  headers?: Record<string, string>;
  disabled?: boolean;
  timeoutS?: number;
  scope?: ServerScope;
  trustAnnotations?: boolean;
}

/** A server of an agent and how it is. Our own ones are `readOnly` and have no settings. */
export interface McpServerView {
  command?: string;
  args?: string[];
  env?: Record<string, string>;
  cwd?: string;
  url?: string;
  headers?: Record<string, string>;
  disabled?: boolean;
  timeoutS?: number;
  scope?: ServerScope;
  trustAnnotations?: boolean;
  name: string;
  source: ServerSource;
  readOnly: boolean;
  status: ServerState;
  changed: boolean;
  error?: string;
  tools?: McpToolView[];
  stderr?: string;
}

/** A tool that a server offers. */
export interface McpToolView {
  name: string;
  description: string;
}

/** Who is signed in. */
export interface MeView {
  id: string;
  role: UserRole;
}

/** What a user says, and where. */
export interface MessageBody {
  content?: string | null;
  files?: string[];
  parentId?: string | null;
  tip?: string | null;
  whenBusy?: WhenBusy;
}

/** Who wrote it. Tool calls are records of their own, not messages. */
export type MessageRole = "assistant" | "system" | "user";

/** Where a message is on its way: it is asked for, streams, and ends; a reply may be regenerated. */
export type MessageStatus = "CANCELLED" | "COMPLETED" | "FAILED" | "OVERWRITTEN" | "PENDING" | "STREAMING";

/** One entry of a conversation: its parts, in the order in which they arrived.

    `content` is their text, a blank line where a tool call or another call of the model lies between, or an
    object for a briefing card. `thoughtProcess`, `citations`, `artifactIds` and `toolCalls` are views of the
    parts, too. */
export interface MessageView {
  id: string;
  conversationId: string;
  seq: number;
  parentId: string | null;
  siblings?: SiblingsView;
  turnId: string | null;
  runId: string | null;
  role: MessageRole;
  contentType: ContentType;
  content: string | BriefingCardView;
  parts: (TextPartView | ThoughtPartView | ToolCallPartView | RetrievalPartView | QuestionPartView | UserTextPartView | FilePartView | CardPartView | NoticePartView)[];
  status: MessageStatus;
  thoughtProcess: ThoughtStepView[];
  citations: CitationView[];
  artifactIds: string[];
  toolCalls: ToolCallView[];
  tokenCount: number | null;
  usage: UsageView | null;
  model: string | null;
  archived: boolean;
  createdAt: string;
  completedAt: string | null;
  error?: FailureView;
}

/** Something degraded, and the turn went on. */
export interface NoticePartView {
  type: "notice";
  code: string;
  message: string;
  iteration: number;
  superseded?: boolean;
}

/** What becomes of a turn whose node is lost: another one continues it, or it ends. */
export type OnCrash = "continue" | "interrupt";

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_AgentView {
  items: AgentView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_AuditEntryView {
  items: AuditEntryView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_BriefingView {
  items: BriefingView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_CompactionView {
  items: CompactionView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_ConversationView {
  items: ConversationView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_DocumentView {
  items: DocumentView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_MessageView {
  items: MessageView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_RunningTurnView {
  items: RunningTurnView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_SearchHitView {
  items: SearchHitView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_ToolResultView {
  items: ToolResultView[];
  nextCursor: string | null;
}

/** Which branch. */
export interface PathBody {
  messageId: string;
  tip?: string | null;
}

/** How urgent a briefing is; P0 is the most urgent. */
export type Priority = "P0" | "P1" | "P2" | "P3";

/** A part of a system prompt as the model gets it; `leftOut` characters did not fit.

    Files come first (those that all agents share have names like `shared/RULES.md`), then the agent's own
    `systemPrompt` and its `role`. */
export interface PromptComponentView {
  name: string;
  text: string;
  length: number;
  truncated: boolean;
  leftOut: number;
  editable: boolean;
}

/** Something that is amiss with the prompt. */
export interface PromptNoticeView {
  code: string;
  message: string;
}

/** An agent's system prompt in the order of its parts. `editable` names the files that can be written. */
export interface PromptView {
  components: PromptComponentView[];
  length: number;
  editable: string[];
  notices: PromptNoticeView[];
}

/** What the model or an MCP server asked the user; without `answer` while it waits. */
export interface QuestionPartView {
  type: "question";
  requestId: string;
  message: string;
  expiresAt: string;
  iteration: number;
  toolCallId?: string | null;
  schema?: Record<string, unknown> | null;
  url?: string | null;
  answer?: AnswerView;
  superseded?: boolean;
}

/** What to send instead. */
export interface QueuedMessagePatch {
  content: string;
}

/** A message that waits. It is sent when the turn before it has completed. */
export interface QueuedMessageView {
  messageId: string;
  content: string;
  files: FilePartView[];
  createdAt: string;
  held: boolean;
  steers?: true;
}

/** A message that was queued. */
export interface QueuedView {
  queued?: true;
  messageId: string;
}

/** What the model was sent in a turn; the same request can be built from it again.

    `sha256` names the system prompt and the messages: where it is the same, the model was told the same. */
export interface ReceiptView {
  turnId: string;
  sha256: string;
  model: string | null;
  components: ComponentReceiptView[];
  summary: string | null;
  messageIds: string[];
  thoughts: boolean;
  tools: string[];
  temperature: number | null;
  maxTokens: number | null;
  tokenEstimate: number;
  droppedMessages: number;
  shortenedResults: string[];
  files: SentFileView[];
  prefixShare: number | null;
}

/** Which answer. */
export interface RegenerateBody {
  messageId?: string | null;
  tip?: string | null;
}

/** A conversation as a report; with `toolName` only what that tool did. */
export interface ReportView {
  conversation: ConversationView;
  agentName: string;
  toolName: string | null;
  exchanges: ExchangeView[];
  files: FileView[];
  madeAt: string;
}

/** A piece of a document, or a memory, that was found. */
export interface RetrievalHitView {
  source: string;
  text: string;
  score: number;
  chunkId?: string | null;
  documentId?: string | null;
  page?: number | null;
  url?: string | null;
  fileName?: string | null;
}

/** Who decides to search the documents: the model by a tool, or every message by itself. */
export type RetrievalMode = "auto" | "tool";

/** Passages that were found, before the reply or by a tool call. */
export interface RetrievalPartView {
  type: "retrieval";
  query: string;
  hits: RetrievalHitView[];
  iteration: number;
  toolCallId?: string | null;
  superseded?: boolean;
}

/** How a run stands: its turn, once its start and its end have been told. */
export interface RunView {
  runId: string;
  turnId: string | null;
}

/** A turn that runs. `stalled`: its node has not been heard of; it is ended soon, by itself. */
export interface RunningTurnView {
  id: string;
  conversationId: string;
  userId: string;
  agentId: string;
  nodeId: string;
  model: string | null;
  startedAt: string;
  state: "aborting" | "running" | "stalled";
}

/** The runs that the events belong to. */
export interface RunsView {
  items: RunView[];
}

/** A message that was found; without `messageId` a conversation, by its title. */
export interface SearchHitView {
  conversationId: string;
  agentId: string;
  title: string | null;
  messageId: string | null;
  seq: number | null;
  role: MessageRole | null;
  snippet: string;
  highlights: HighlightView[];
  createdAt: string;
  onPath: boolean;
}

/** A file that the model was sent as it is, and what we take it to cost in tokens. */
export interface SentFileView {
  type: "document" | "image";
  fileName: string;
  tokens: number;
}

/** Who shares one process or connection: all users of an agent, one user, or one conversation. */
export type ServerScope = "agent" | "conversation" | "user";

/** Who put a server there: the product for everyone, the product where it is needed, or the owner. */
export type ServerSource = "builtin" | "system" | "user";

/** How a server is. `idle` starts when it is needed, `inactive` has nothing to offer this agent. */
export type ServerState = "connecting" | "disabled" | "failed" | "idle" | "inactive" | "ready";

/** The messages that follow the same one: versions of a question, or answers to it. */
export interface SiblingsView {
  ids: string[];
  index: number;
}

/** Where a briefing is talked about. */
export interface StartedConversationView {
  conversationId: string;
  conversation_id: string;
  messageId: string;
}

/** A turn that has begun. */
export interface StartedTurnView {
  turnId: string;
  userMessageId: string;
  assistantMessageId: string;
}

/** A message that was given to the running turn; if the turn ends first, it is queued. */
export interface SteeredView {
  steered?: true;
  turnId: string;
  messageId: string;
}

/** A turn that an admin has stopped; `IDLE` when it had ended by itself. */
export interface StoppedTurnView {
  turnId: string;
  status: "GENERATION_ABORTED" | "IDLE";
}

/** Text that the user or the model wrote. */
export interface TextPartView {
  type: "text";
  text: string;
  iteration: number;
  superseded?: boolean;
}

/** The model's reasoning; `title` names a step of another engine's run. */
export interface ThoughtPartView {
  type: "thought";
  text: string;
  startedAt: string;
  durationMs: number;
  iteration: number;
  title?: string | null;
  superseded?: boolean;
}

/** One step of how the agent came to its answer. */
export interface ThoughtStepView {
  kind: string;
  title: string;
  detail: string;
  startedAt: string;
  durationMs: number;
  toolCallId?: string | null;
}

/** Whether a tool runs freely, only when the user allows it, or never. */
export type ToolAccess = "allow" | "ask" | "deny";

/** A tool call with its result. */
export interface ToolCallPartView {
  type: "tool_call";
  toolCallId: string;
  toolName: string;
  server: string;
  arguments: Record<string, unknown>;
  status: ToolCallStatus;
  result: unknown;
  durationMs: number | null;
  iteration: number;
  error?: string;
  chartData?: unknown;
  artifactIds?: string[];
  approval?: CallApprovalView;
  superseded?: boolean;
}

/** How a call stands; every call ends in exactly one of the states other than `running`. */
export type ToolCallStatus = "denied" | "error" | "interrupted" | "ok" | "running" | "timeout" | "unknown";

/** One use of a tool. */
export interface ToolCallView {
  toolCallId: string;
  toolName: string;
  server: string;
  arguments: Record<string, unknown>;
  status: ToolCallStatus;
  result: unknown;
  durationMs: number | null;
  error?: string;
  chartData?: unknown;
}

/** What a call does: nothing but read, the same however often it runs, or more each time. */
export type ToolEffect = "idempotent" | "read" | "write";

/** One use of a tool, and where it was used. */
export interface ToolResultView {
  toolCallId: string;
  toolName: string;
  server: string;
  arguments: Record<string, unknown>;
  status: ToolCallStatus;
  result: unknown;
  durationMs: number | null;
  error?: string;
  chartData?: unknown;
  conversationId: string;
  turnId: string;
  runId: string | null;
  messageId: string;
  createdAt: string;
}

/** Whether tools run freely, only when the user allows it, or never; and what a call does. */
export interface ToolRuleView {
  access?: ToolAccess;
  effect?: ToolEffect;
}

/** A turn runs, may wait for a person, and ends in one of three ways. */
export type TurnStatus = "CANCELLED" | "COMPLETED" | "FAILED" | "RUNNING" | "WAITING";

/** How a turn stands. */
export interface TurnView {
  id: string;
  runId: string | null;
  conversationId: string;
  userMessageId: string;
  assistantMessageId: string;
  status: TurnStatus;
  model: string | null;
  startedAt: string;
  endedAt: string | null;
  usage: UsageView | null;
  error: FailureView | null;
}

/** A file that a message can have. */
export interface UploadedFileView {
  id: string;
  fileName: string;
  mediaType: string;
  size: number;
  width?: number | null;
  height?: number | null;
}

/** Files in the order in which they were sent. */
export interface UploadedFilesView {
  items: UploadedFileView[];
}

/** What one has spent, oldest day first. */
export interface UsageReportView {
  items: DayUsageView[];
}

/** Tokens that were spent; `estimated` where the provider gave no numbers.

    `inputTokens` counts all of the input, also what the provider read from its cache or wrote to it. */
export interface UsageView {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  estimated: boolean;
}

/** `admin` manages agents and users; it does not open other people's conversations. */
export type UserRole = "admin" | "user";

/** What the user sent while the turn ran, where the turn took it in. */
export interface UserTextPartView {
  type: "user_text";
  messageId: string;
  text: string;
  iteration: number;
  superseded?: boolean;
}

/** Who may talk to an agent: its owner, or everyone. */
export type Visibility = "private" | "public";

/** A turn that waits for its user. */
export interface WaitingTurnView {
  status: "WAITING";
  turnId: string;
  approvals: ApprovalView[];
}

/** What becomes of a message that is sent while the agent answers. */
export type WhenBusy = "queue" | "reject" | "steer";
