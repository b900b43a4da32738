// Made from the OpenAPI document by scripts/page_types.py; do not edit.

/** The turn that was stopped; `IDLE` if none was running. */
export interface AbortView {
  status: "GENERATION_ABORTED" | "IDLE";
  turnId?: string | null;
  messageId?: string | null;
  content?: string | null;
}

/** An invitation's link, and whether to leave another account. */
export interface AcceptBody {
  token: string;
  switch?: boolean;
}

/** Who is signed in now. */
export interface AcceptedView {
  id: string;
  role: UserRole;
}

/** The users that a key acts for. */
export interface ActAsBody {
  realm: string;
}

/** The users that a key acts for. */
export interface ActAsView {
  realm: string;
}

/** The agent to create. */
export interface AgentBody {
  name: string;
  description?: string;
  primaryRoleId?: string;
  systemPrompt?: string;
  model?: string | null;
  visibility?: Visibility;
  settings?: AgentSettingsBody;
  engine?: EngineBody | null;
  applied?: boolean;
}

/** A field that a change would give another value. */
export interface AgentChangeView {
  path: string[];
  before: unknown;
  after: unknown;
}

/** The color of an agent's icon; `auto` is one that a front end derives from the agent's id. */
export type AgentColor = "auto" | "blue" | "green" | "orange" | "pink" | "red" | "teal" | "violet" | "yellow";

/** An agent with all its MCP servers, built-in and its own; for its owner and admins. */
export interface AgentDetailView {
  id: string;
  name: string;
  description: string;
  starters?: string[];
  icon?: AgentIcon;
  color?: AgentColor;
  visibility: Visibility;
  isDefault: boolean;
  createdAt: string;
  updatedAt: string;
  ownerId: string | null;
  engine?: EngineView;
  readOnly?: string[];
  primaryRoleId?: string;
  systemPrompt?: string;
  model?: string | null;
  settings?: AgentSettingsView;
  version?: number;
  appliedVersion?: number;
  rulesWithoutServer?: string[];
  mcpServers?: McpServerView[];
}

/** What a front end shows beside an agent's name: the name's first letter, or a picture. */
export type AgentIcon = "anchor" | "book" | "briefcase" | "bug" | "calculator" | "camera" | "chart" | "code" | "compass" | "flask" | "globe" | "heart" | "languages" | "leaf" | "letter" | "lightbulb" | "mail" | "music" | "palette" | "pen" | "plane" | "scale" | "search" | "shield";

/** The fields to change: a JSON merge patch (RFC 7396), in which null restores the default. */
export interface AgentPatch {
  name?: string;
  description?: string | null;
  primaryRoleId?: string | null;
  systemPrompt?: string | null;
  model?: string | null;
  visibility?: Visibility | null;
  settings?: Record<string, unknown> | null;
  engine?: Record<string, unknown> | null;
  applied?: boolean;
}

/** What saving an agent would change. Nothing has been stored. */
export interface AgentPreviewView {
  changes: AgentChangeView[];
  requiresToken: boolean;
  rulesWithoutServer?: string[];
}

/** An agent's limits and behavior; 0 means no limit. */
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
  clientTools?: boolean;
  userInstructions?: boolean;
  tools?: Record<string, {   access?: "allow" | "ask" | "deny" | null;   effect?: "idempotent" | "read" | "write" | null; }>;
  models?: string[];
  fallbackModels?: string[];
  agents?: string[];
  budgetMonth?: string | number;
  deleteAfterDays?: number;
  starters?: string[];
  icon?: AgentIcon;
  color?: AgentColor;
  output?: Record<string, unknown> | null;
}

/** An agent's limits and behavior; 0 means no limit. */
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
  clientTools?: boolean;
  userInstructions?: boolean;
  tools: Record<string, ToolRuleView>;
  models: string[];
  fallbackModels: string[];
  agents?: string[];
  budgetMonth?: string;
  deleteAfterDays?: number;
  starters?: string[];
  icon?: AgentIcon;
  color?: AgentColor;
  output?: Record<string, unknown> | null;
}

/** A tool that an agent's turns may use. */
export interface AgentToolView {
  name: string;
  description: string;
  effect: ToolEffect;
  server: string;
}

/** An agent's tools, ours first. */
export interface AgentToolsView {
  nextCursor?: null;
  items: AgentToolView[];
}

/** An agent. Only its owner and admins see its prompt, model and settings; all see its `starters`,
    `icon` and `color`.

    `ownerId` is null for the default agent, which nobody owns. */
export interface AgentView {
  id: string;
  name: string;
  description: string;
  starters?: string[];
  icon?: AgentIcon;
  color?: AgentColor;
  visibility: Visibility;
  isDefault: boolean;
  createdAt: string;
  updatedAt: string;
  ownerId: string | null;
  engine?: EngineView;
  readOnly?: string[];
  primaryRoleId?: string;
  systemPrompt?: string;
  model?: string | null;
  settings?: AgentSettingsView;
  version?: number;
  appliedVersion?: number;
  rulesWithoutServer?: string[];
}

/** A tool that you have allowed for a whole conversation. */
export interface AllowedToolView {
  server: string;
  name: string;
  allowedAt: string;
}

/** The tools that you have allowed for a whole conversation, the latest one first. */
export interface AllowedToolsView {
  nextCursor?: null;
  items: AllowedToolView[];
}

/** The user's answer. */
export interface AnswerBody {
  action: "allow" | "answer" | "deny" | "edit" | "result";
  scope?: ApprovalScope;
  arguments?: Record<string, unknown> | null;
  content?: unknown;
  error?: string | null;
}

/** The user's answer. */
export interface AnswerView {
  action: ApprovalAction;
  at: string;
  content?: unknown;
}

/** How a request ended; users can't choose `expire`. */
export type ApprovalAction = "allow" | "answer" | "deny" | "edit" | "expire" | "result";

/** What a turn waits for: approval of a tool call, an answer for the model, one for an MCP server, or the
    result of a tool that the client runs. */
export type ApprovalKind = "client_tool" | "elicitation" | "question" | "tool";

/** What an approval covers: this call, or every call of this tool in the conversation. */
export type ApprovalScope = "conversation" | "once";

/** A turn's request to its user; it stays open until the user answers or it expires. */
export interface ApprovalView {
  requestId: string;
  turnId: string;
  conversationId: string;
  conversationTitle: string | null;
  agentId: string;
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

/** The open requests of your turns, oldest first. */
export interface ApprovalsView {
  nextCursor?: null;
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

/** What blocks the agents' event loop: which of them, in which line of its code, for how long. */
export interface BlockedLoopView {
  agent: string | null;
  place: string;
  blockedMs: number;
}

/** The briefing to send. */
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

/** A notice from an agent. `messageId` is its card in the conversation, if there is one. */
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

/** A budget of yours, or of an agent or API key of yours. Running calls have `reserved` some of it. */
export interface BudgetView {
  scope: "agent" | "key" | "user";
  id: string;
  period: "day" | "month";
  limit: string;
  spent: string;
  reserved: string;
  currency: string;
  resetsAt: string;
}

/** The request about a tool call, to its user or to their client; without `action` while it is open. */
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

/** The user's message. */
export interface ChatBody {
  content?: string | null;
  files?: string[];
}

/** A source; sources are numbered in order of arrival. */
export interface CitationBody {
  title: string;
  snippet?: string;
  score?: number;
  url?: string | null;
  fileName?: string | null;
  documentId?: string | null;
  page?: number | null;
}

/** A source that the answer cites as [index]. */
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

/** A tool that the client runs. */
export interface ClientToolBody {
  name: string;
  description?: string;
  parameters?: Record<string, unknown>;
}

/** Code of an agent. */
export interface CodeView {
  key: string;
  version: number | null;
}

/** How to compact. */
export interface CompactBody {
  keepLast?: number | null;
}

/** A summary that replaces the messages `fromSeq` to `toSeq` in the context; they stay archived. */
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

/** The component's new text; an empty one removes it. */
export interface ComponentBody {
  text: string;
}

/** A part of the system prompt. Only the agent's owner and admins see `text`. */
export interface ComponentReceiptView {
  name: string;
  sha256: string;
  length: number;
  truncated: boolean;
  text?: string;
}

/** What the content is: a text, or a briefing shown as a card. */
export type ContentType = "briefing_card" | "text";

/** An entry of a model's history. */
export interface ContextMessageView {
  role: string;
  content: string;
}

/** The latest messages, ready to send to a model; a summary of archived ones comes first. */
export interface ContextView {
  messages: ContextMessageView[];
}

/** The conversation to create. */
export interface ConversationBody {
  title?: string | null;
  metadata?: Record<string, unknown>;
}

/** A conversation with its latest messages, oldest first; `nextCursor` continues with older ones. */
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
  deletesAt?: string;
  deletedAt?: string;
  purgeAt?: string;
  sessionId?: string;
  messages: MessageView[];
  nextCursor: string | null;
  summary: string | null;
  queued: QueuedMessageView[];
}

/** Whether a user may have conversations besides the main one. */
export type ConversationMode = "multiple" | "single";

/** The fields to change: a JSON merge patch. A null `title` removes the user's own title. */
export interface ConversationPatch {
  title?: string | null;
  status?: ConversationStatus;
  pinned?: boolean;
  metadata?: Record<string, unknown> | null;
}

/** Whether it is active, or its owner has archived it. */
export type ConversationStatus = "active" | "archived";

/** A conversation without its messages. Only create and detail responses include `sessionId`.

    In the list of deleted conversations, each has `deletedAt` and `purgeAt`: you can restore it until then. */
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
  deletesAt?: string;
  deletedAt?: string;
  purgeAt?: string;
  sessionId?: string;
}

/** What something has cost. */
export interface CostView {
  amount: string;
  currency: string;
}

/** Where the code asked for something else than what is recorded. */
export interface DivergedView {
  recorded: string;
  asked: string;
}

/** A document is processed, then ready or failed; a failed one can be retried. */
export type DocumentStatus = "failed" | "processing" | "ready";

/** A document: `ready` to search, still `processing`, or `failed` with the reason. */
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

/** The documents created from the files; a file that was already added returns its existing document. */
export interface DocumentsView {
  items: DocumentView[];
}

/** A server that speaks AG-UI and runs the agent. */
export interface EngineBody {
  kind: "ag-ui";
  url: string;
  headers?: Record<string, string>;
  repeat?: boolean;
}

/** What replies for an agent: a model with its settings (`config`), a program (`code`), or a server of
    somebody else's (`ag-ui`).

    `ready` means that some process runs the program now. Only the agent's owner and admins see `key`, the
    `version` of the newest code, and how many `workers` run it; and `url`, `headers` and `repeat`. */
export interface EngineView {
  kind: "ag-ui" | "code" | "config";
  status?: "absent" | "ready";
  host?: string;
  url?: string;
  headers?: Record<string, string>;
  repeat?: boolean;
  key?: string;
  version?: number;
  workers?: number;
}

/** What went wrong. */
export interface ErrorBody {
  code: string;
  message: string;
  requestId: string;
  param?: string | null;
  details?: unknown;
}

/** The shape of every error. */
export interface ErrorResponse {
  error: ErrorBody;
}

/** A question, and the work done to answer it. */
export interface ExchangeView {
  asked: MessageView | null;
  answered: MessageView | null;
}

/** A tool that a node used. */
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

/** An event of a run. `ExecutionStarted` has the user's `input`, `NodeCompleted` its `node`,
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

/** What an engine reports about a run. */
export type ExecutionEventType = "ExecutionCancelled" | "ExecutionCompleted" | "ExecutionFailed" | "ExecutionStarted" | "NodeCompleted";

/** The tokens that a run spent. */
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

/** The rating; it replaces an earlier one with its note. */
export interface FeedbackBody {
  rating: Rating | null;
  note?: string;
  shareText?: boolean;
}

/** Your rating of an answer. With `shareText`, the agent's owner may read everything that the model
    received in that turn, and its answer. */
export interface FeedbackView {
  rating: Rating;
  note: string;
  shareText: boolean;
}

/** A file that the user attached, an image that a tool returned, or output of another engine's run. */
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
  isElsewhere?: boolean;
  superseded?: boolean;
}

/** A file that a tool returned; download it with `GET /api/artifacts/{id}`. */
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

/** The gateway to save. A model's id is `name/model`, so the name can't be changed later. */
export interface GatewayBody {
  kind: GatewayKind;
  url?: string | null;
  apiKey?: string | null;
  models?: (string | ListedModelBody)[];
  defaultModel?: string | null;
  name: string;
}

/** The APIs that gateways speak. */
export type GatewayKind = "anthropic" | "local" | "openai" | "responses";

/** The fields to change: a JSON merge patch (RFC 7396), in which null restores the default. */
export interface GatewayPatch {
  kind?: GatewayKind;
  url?: string | null;
  apiKey?: string | null;
  models?: (string | ListedModelBody)[] | null;
  defaultModel?: string | null;
}

/** What is known about a gateway's provider. */
export type GatewayState = "connected" | "failing" | "unknown";

/** Whether a gateway works, as anybody may know it. */
export interface GatewayStateView {
  name: string;
  status: GatewayState;
  reason?: string;
}

/** What a test of a gateway found. */
export interface GatewayTestView {
  ok: boolean;
  models: string[];
  error?: string;
}

/** One account with a provider, and whether it works. */
export interface GatewayView {
  name: string;
  kind: GatewayKind;
  url: string | null;
  apiKey: string | null;
  models: ListedModelView[];
  defaultModel: string | null;
  source: "admin" | "settings";
  status: GatewayState;
  error?: string;
  version?: number;
  createdAt?: string;
  updatedAt?: string;
}

/** All connections to model providers. */
export interface GatewaysView {
  nextCursor?: null;
  items: GatewayView[];
}

/** The server's status. */
export interface HealthView {
  status: string;
  version: string;
}

/** The position of a match, in characters. */
export interface HighlightView {
  begin: number;
  end: number;
}

/** A matching passage of a document. */
export interface HitView {
  chunkId: string;
  documentId: string;
  source: string;
  page: number | null;
  heading: string | null;
  text: string;
  snippet: string;
  score: number;
}

/** The matches, best first. */
export interface HitsView {
  nextCursor?: null;
  items: HitView[];
  notice: string | null;
}

/** Why an import failed, like the error of a response. */
export interface ImportErrorView {
  code: string;
  message: string;
  reason: string | null;
}

/** Something that was left out, and why. */
export interface ImportProblemView {
  what: string;
  why: string;
  reason: SkipReason;
}

/** The state of a run. */
export type ImportStatus = "COMPLETED" | "FAILED" | "INTERRUPTED" | "RUNNING" | "STOPPED";

/** An import: what it has done so far, or in all. */
export interface ImportView {
  id: string;
  agentId: string;
  fileName: string;
  size: number;
  status: ImportStatus;
  found: number | null;
  done: number;
  imported: number;
  alreadyThere: number;
  empty: number;
  leftOut: number;
  messages: number;
  files: number;
  problems: ImportProblemView[];
  notes: string[];
  conversations: ImportedConversationView[];
  error: ImportErrorView | null;
  startedAt: string;
  endedAt: string | null;
}

/** A conversation that was added. */
export interface ImportedConversationView {
  id: string;
  title: string;
}

/** The user's own instructions; an empty text removes them. */
export interface InstructionsBody {
  text: string;
}

/** What the user tells every agent. */
export interface InstructionsView {
  text: string;
}

/** An invitation's link. */
export interface InvitationBody {
  token: string;
}

/** What an invitation's link offers to whoever opens it. */
export interface InvitationOfferView {
  userId: string;
  name: string;
  role: UserRole;
  expiresAt: string;
  invitedBy?: string;
  endsSessions: boolean;
  signedInAs?: string;
}

/** An invitation that nobody has accepted yet, without its link. */
export interface InvitationView {
  id: string;
  userId: string;
  role: UserRole;
  createdAt: string;
  expiresAt: string;
  invitedBy?: string;
}

/** The key to make. */
export interface KeyBody {
  name: string;
  scopes: Scope[];
  agents?: string[] | null;
  budgetMonth?: string | number | null;
  expiresAt?: string | null;
  actAs?: ActAsBody | null;
  mayDelete?: boolean;
}

/** An API key without its value. */
export interface KeyView {
  id: string;
  name: string;
  prefix: string;
  scopes: Scope[];
  agents: string[] | null;
  budgetMonth: string | null;
  parentId: string | null;
  actAs: ActAsView | null;
  mayDelete: boolean;
  createdAt: string;
  expiresAt: string | null;
  lastUsedAt: string | null;
}

/** A user as admins see them, without anything that they do. */
export interface KnownUserView {
  id: string;
  invited: boolean;
  name?: string;
  role?: UserRole;
  groups?: string[];
  suspendedAt?: string;
  lastSeenAt?: string;
}

/** A model, and what to know about it where the server doesn't know it by itself. */
export interface ListedModelBody {
  name: string;
  contextTokens?: number | null;
  maxOutputTokens?: number | null;
  supportsTools?: boolean | null;
  takesImages?: boolean | null;
  takesPdfs?: boolean | null;
  price?: PriceBody | null;
}

/** A model that a gateway lists, and what its admin says about it. */
export interface ListedModelView {
  name: string;
  contextTokens?: number;
  maxOutputTokens?: number;
  supportsTools?: boolean;
  takesImages?: boolean;
  takesPdfs?: boolean;
  price?: PriceView;
}

/** Its status in lists: active or archived, or deleted until it is purged. */
export type ListedStatus = "active" | "archived" | "deleted";

/** A server as its owner configured it: a program (`command`) or an address (`url`). */
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

/** An agent's server and its status. Built-in servers are `readOnly` and have no settings. */
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
  effect: ToolEffect;
}

/** The signed-in user. */
export interface MeView {
  id: string;
  role: UserRole;
  installation: string;
  name?: string;
  groups?: string[];
  deleteAfterDays?: number;
  reassignable?: MovableView;
}

/** What to change. */
export interface MemoryPatch {
  content?: string;
  tags?: string[];
}

/** Something that an agent remembers about the user. */
export interface MemoryView {
  id: string;
  content: string;
  tags: string[];
  createdAt: string;
}

/** The user's message, and where it goes. */
export interface MessageBody {
  content?: string | null;
  files?: string[];
  parentId?: string | null;
  tip?: string | null;
  whenBusy?: WhenBusy;
  model?: string | null;
  tools?: ClientToolBody[];
  onDisconnect?: "continue" | "stop";
}

/** Who wrote it. Tool calls are records of their own, not messages. */
export type MessageRole = "assistant" | "system" | "user";

/** A message's state: it is pending, streams, and ends; a reply may be regenerated. */
export type MessageStatus = "CANCELLED" | "COMPLETED" | "FAILED" | "OVERWRITTEN" | "PENDING" | "STREAMING";

/** An entry of a conversation: its parts, in order of arrival.

    `content` is their text, with a blank line where a tool call or another model call comes between, or an
    object for a briefing card. `thoughtProcess`, `citations`, `artifactIds` and `toolCalls` are also views of
    the parts. */
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
  parts: (TextPartView | ThoughtPartView | ToolCallPartView | RetrievalPartView | QuestionPartView | UserTextPartView | FilePartView | CardPartView | StepPartView | NoticePartView)[];
  status: MessageStatus;
  thoughtProcess: ThoughtStepView[];
  citations: CitationView[];
  artifactIds: string[];
  toolCalls: ToolCallView[];
  tokenCount: number | null;
  usage: UsageView | null;
  model: string | null;
  cost?: CostView | null;
  archived: boolean;
  createdAt: string;
  completedAt: string | null;
  error?: FailureView;
  output?: unknown;
  feedback?: FeedbackView;
}

/** What a model said to a request, which tools it called, and what that took.

    The duration of the original includes its tools; a rerun calls none. */
export interface ModelRunView {
  model: string | null;
  text: string;
  calls: RunCallView[];
  usage: UsageView;
  cost: CostView | null;
  durationMs: number;
}

/** A model that can be chosen. */
export interface ModelView {
  id: string;
  gateway: string;
  name: string;
  contextTokens: number;
  maxOutputTokens: number | null;
  supportsTools: boolean;
  takesImages: boolean;
  takesPdfs: boolean;
  price: PriceView | null;
  default: boolean;
}

/** The models that you can choose, the default one first. */
export interface ModelsView {
  nextCursor?: null;
  items: ModelView[];
}

/** How much of a user can be moved to another, or was. */
export interface MovableView {
  conversations: number;
  agents: number;
  briefings: number;
  memories: number;
}

/** The conversation to create, and with which agent. */
export interface NewConversationBody {
  title?: string | null;
  metadata?: Record<string, unknown>;
  agentId: string;
}

/** The person to invite. */
export interface NewInvitationBody {
  user: string;
  admin?: boolean;
  ttlS?: number;
}

/** A new invitation with its link. It is shown this once: Threadkeep stores only its hash. */
export interface NewInvitationView {
  id: string;
  userId: string;
  role: UserRole;
  createdAt: string;
  expiresAt: string;
  invitedBy?: string;
  url: string;
}

/** A new API key with its value. It is shown this once: Threadkeep stores only its hash. */
export interface NewKeyView {
  id: string;
  name: string;
  prefix: string;
  scopes: Scope[];
  agents: string[] | null;
  budgetMonth: string | null;
  parentId: string | null;
  actAs: ActAsView | null;
  mayDelete: boolean;
  createdAt: string;
  expiresAt: string | null;
  lastUsedAt: string | null;
  key: string;
}

/** A new share with its link. It is shown this once: Threadkeep stores only the hash of its token. */
export interface NewShareView {
  id: string;
  conversationId: string;
  messageId: string;
  title: string;
  tools: boolean;
  messageCount: number;
  createdAt: string;
  expiresAt: string | null;
  url: string;
  token: string;
}

/** Something is unavailable; the turn continued. */
export interface NoticePartView {
  type: "notice";
  code: string;
  message: string;
  iteration: number;
  superseded?: boolean;
}

/** What happens to a turn whose node dies: another node continues it, or it ends. */
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
export interface PageView_ImportView {
  items: ImportView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_InvitationView {
  items: InvitationView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_KeyView {
  items: KeyView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_KnownUserView {
  items: KnownUserView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_MemoryView {
  items: MemoryView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_MessageView {
  items: MessageView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_RatedAnswerView {
  items: RatedAnswerView[];
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
export interface PageView_SessionView {
  items: SessionView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_ShareView {
  items: ShareView[];
  nextCursor: string | null;
}

/** A page of a list. `nextCursor` continues it; null at the end. */
export interface PageView_ToolResultView {
  items: ToolResultView[];
  nextCursor: string | null;
}

/** A passage of a document; `chunkId` is the one that search results and citations have. */
export interface PassageView {
  chunkId: string;
  position: number;
  page: number | null;
  heading: string | null;
  text: string;
}

/** Some passages of a document, in order, and how many it has. */
export interface PassagesView {
  items: PassageView[];
  total: number;
}

/** Which branch to select. */
export interface PathBody {
  messageId: string;
  tip?: string | null;
}

/** What a model charges per million tokens: decimals as texts, or numbers. */
export interface PriceBody {
  input: string | number;
  output: string | number;
  cachedInput?: string | number | null;
  cacheWrite?: string | number | null;
}

/** What a model costs per million tokens, in the server's currency. */
export interface PriceView {
  input: string;
  cachedInput: string;
  cacheWrite: string;
  output: string;
}

/** How urgent a briefing is; P0 is the most urgent. */
export type Priority = "P0" | "P1" | "P2" | "P3";

/** The program of an agent in code. */
export interface ProgramView {
  key: string;
  version: number;
}

/** A part of a system prompt as the model receives it; `leftOut` characters did not fit.

    Files come first (files shared by all agents have names like `shared/RULES.md`), then the agent's own
    `systemPrompt` and its `role`. */
export interface PromptComponentView {
  name: string;
  text: string;
  length: number;
  truncated: boolean;
  leftOut: number;
  editable: boolean;
}

/** A problem with the prompt. */
export interface PromptNoticeView {
  code: string;
  message: string;
}

/** An agent's system prompt, with its parts in order. `editable` lists the files that you can change. */
export interface PromptView {
  components: PromptComponentView[];
  length: number;
  editable: string[];
  notices: PromptNoticeView[];
}

/** A question from the model or an MCP server; without `answer` while it is open. */
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

/** The new text. */
export interface QueuedMessagePatch {
  content: string;
}

/** A queued message. It is sent when the turn before it has completed. */
export interface QueuedMessageView {
  messageId: string;
  content: string;
  files: FilePartView[];
  model: string | null;
  createdAt: string;
  held: boolean;
  steers?: true;
}

/** A message that was queued. */
export interface QueuedView {
  queued?: true;
  messageId: string;
}

/** A user's rating of an answer. `turnId` and the texts are there if the user shares the turn with the
    agent's owner, or if it is your own. */
export interface RatedAnswerView {
  messageId: string;
  rating: Rating;
  note: string;
  shareText: boolean;
  model: string | null;
  cost: CostView | null;
  answeredAt: string;
  ratedAt: string;
  own: boolean;
  turnId?: string;
  question?: string;
  answer?: string;
}

/** Whether the reply was good. */
export type Rating = "down" | "up";

/** Whether the server can serve requests, which background loops keep failing, and how gateways are.

    `blocked`: an agent in code keeps the event loop that all of them share from answering. */
export interface ReadinessView {
  status: string;
  version: string;
  failing: string[];
  gateways: GatewayStateView[];
  blocked?: BlockedLoopView;
}

/** What the model received in a turn; enough to rebuild the same request.

    `sha256` identifies the system prompt and the messages: if it is the same, the model received the same. */
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

/** Which answer to regenerate. */
export interface RegenerateBody {
  messageId?: string | null;
  tip?: string | null;
  whenBusy?: "reject" | "stop";
  model?: string | null;
  tools?: ClientToolBody[];
}

/** A conversation as a report; with `toolName`, only that tool's calls. */
export interface ReportView {
  conversation: ConversationView;
  agentName: string;
  toolName: string | null;
  exchanges: ExchangeView[];
  files: FileView[];
  madeAt: string;
}

/** What to change; the rest is as it was in the turn. */
export interface RerunBody {
  model?: string | null;
  temperature?: number | null;
  systemPrompt?: string | null;
}

/** A turn's request, run again, beside the original.

    `NEEDS_TOOL`: the model made a call that the original has no result for; `error` names it. */
export interface RerunView {
  turnId: string;
  question: string;
  outcome: "COMPLETED" | "FAILED" | "NEEDS_TOOL";
  rerun: ModelRunView;
  original: ModelRunView;
  error?: FailureView;
}

/** A matching passage of a document, or a memory. */
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

/** When to search the documents: when the model calls the tool, or automatically for every message. */
export type RetrievalMode = "auto" | "tool";

/** Passages found before the reply or by a tool call. */
export interface RetrievalPartView {
  type: "retrieval";
  query: string;
  hits: RetrievalHitView[];
  iteration: number;
  toolCallId?: string | null;
  superseded?: boolean;
}

/** A tool call of one of two runs. */
export interface RunCallView {
  toolName: string;
  server: string;
  arguments: Record<string, unknown>;
  status: string;
  inBoth: boolean;
}

/** The status of a run: its turn, once both its start and its end have arrived. */
export interface RunView {
  runId: string;
  turnId: string | null;
}

/** A turn that runs or waits. `stalled`: its node has stopped responding; another takes it over soon.

    Of an agent in code, `agent` is the program's key, `codeVersion` that of the code that began to run the
    turn, and `worker` the process that runs the program. `step` is the oldest of its steps that have begun
    and not ended, with the time; it is known after a second or two. A turn that nobody runs, because its
    program isn't there, waits for a `worker`; one that waits for an answer, for a `person`. */
export interface RunningTurnView {
  id: string;
  conversationId: string;
  userId: string;
  agentId: string;
  nodeId: string | null;
  model: string | null;
  startedAt: string;
  state: "aborting" | "running" | "stalled" | "waiting";
  agent?: string | null;
  codeVersion?: number | null;
  step?: string | null;
  stepSince?: string | null;
  worker?: string | null;
  waitsFor?: "person" | "worker" | null;
}

/** The runs that the events belong to. */
export interface RunsView {
  items: RunView[];
}

/** What a key is for; each includes those before it. */
export type Scope = "admin" | "chat" | "read";

/** A matching message or, without `messageId`, a conversation with a matching title. */
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

/** A file sent to the model as is, with its estimated cost in tokens. */
export interface SentFileView {
  type: "document" | "image";
  fileName: string;
  tokens: number;
}

/** Who shares one process or connection: all users of an agent, one user, or one conversation. */
export type ServerScope = "agent" | "conversation" | "user";

/** Who added a server: the product for everyone, the product where needed, or the owner. */
export type ServerSource = "builtin" | "system" | "user";

/** A server's state. `idle` starts when needed, `inactive` has nothing to offer this agent. */
export type ServerState = "connecting" | "disabled" | "failed" | "idle" | "inactive" | "ready";

/** A browser in which you are signed in. */
export interface SessionView {
  id: string;
  device: string;
  way: string;
  current: boolean;
  createdAt: string;
  lastUsedAt: string;
  endsAt: string;
}

/** What to share. */
export interface ShareBody {
  messageId?: string | null;
  tools?: boolean;
  expiresAt?: string | null;
}

/** A share of one of your conversations, without its link. */
export interface ShareView {
  id: string;
  conversationId: string;
  messageId: string;
  title: string;
  tools: boolean;
  messageCount: number;
  createdAt: string;
  expiresAt: string | null;
}

/** A message of a share. */
export interface SharedMessageView {
  number: number;
  role: MessageRole;
  status: MessageStatus;
  parts: (TextPartView | ThoughtPartView | ToolCallPartView | RetrievalPartView | QuestionPartView | UserTextPartView | FilePartView | CardPartView | StepPartView | NoticePartView)[];
  createdAt: string;
}

/** What happened for a reply of a share. */
export interface SharedReplayView {
  events: Record<string, unknown>[];
}

/** A shared conversation: what was said, and on request what the agent did. It names nobody. */
export interface SharedView {
  title: string;
  tools: boolean;
  messages: SharedMessageView[];
  messageCount: number;
  nextCursor: string | null;
  createdAt: string;
  expiresAt: string | null;
}

/** The messages with the same parent: versions of a question, or answers to it. */
export interface SiblingsView {
  ids: string[];
  index: number;
}

/** A link for another browser of yours. It is shown this once: Threadkeep stores only its hash. */
export interface SignInLinkView {
  url: string;
  expiresAt: string;
}

/** How people can sign in here. */
export interface SignInView {
  ways: SignInWayView[];
  invitations: boolean;
  tokens: boolean;
}

/** A provider with which people sign in. */
export interface SignInWayView {
  name: string;
  title: string;
  url: string;
}

/** Why something was left out, for programs; a person reads the sentence. */
export type SkipReason = "duplicate" | "incomplete" | "not_a_conversation" | "over_quota" | "too_large" | "too_many_branches" | "unreadable";

/** The conversation that the briefing opened. */
export interface StartedConversationView {
  conversationId: string;
  conversation_id: string;
  messageId: string;
}

/** A turn that has started. */
export interface StartedTurnView {
  turnId: string;
  userMessageId: string;
  assistantMessageId: string;
}

/** A message added to the running turn; if the turn ends first, it is queued. */
export interface SteeredView {
  steered?: true;
  turnId: string;
  messageId: string;
}

/** An exception of the program, without its traceback, which is in the program's own log. */
export interface StepErrorView {
  type: string;
  message: string;
}

/** A step of an agent in code. */
export interface StepPartView {
  type: "step";
  stepId: string;
  name: string;
  title: string | null;
  status: "cancelled" | "error" | "ok" | "running" | "unknown";
  startedAt: string;
  durationMs: number | null;
  iteration: number;
  agent?: string | null;
  parentId?: string | null;
  superseded?: boolean;
}

/** A step of a turn. Once the turn's log is trimmed, `effect`, `attempt` and `bytes` are null. */
export interface StepView {
  stepId: string;
  name: string;
  title: string | null;
  kind: "agent" | "model" | "question" | "step" | "tool";
  status: "cancelled" | "error" | "ok" | "running" | "unknown";
  effect: "idempotent" | "read" | "write" | null;
  attempt: number | null;
  startedAt: string;
  durationMs: number | null;
  bytes: number | null;
  agent?: string | null;
  parentId?: string | null;
  error?: StepErrorView;
  value?: unknown;
  hidden?: boolean;
}

/** A page of a turn's steps, in order of begin. `nextCursor` continues it; null at the end. */
export interface StepsView {
  items: StepView[];
  nextCursor: string | null;
  code: CodeView | null;
  diverged?: DivergedView;
}

/** A turn that an admin stopped; `IDLE` if it had already ended. */
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

/** One step of the agent's reasoning. */
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
  clientRequest?: CallApprovalView;
  parentId?: string;
  superseded?: boolean;
}

/** The status of a call; every call ends in exactly one of the states other than `running`. */
export type ToolCallStatus = "denied" | "error" | "interrupted" | "ok" | "running" | "timeout" | "unknown";

/** A tool call. */
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

/** What a call does: it only reads, has the same effect however often it runs, or more each time. */
export type ToolEffect = "idempotent" | "read" | "write";

/** A tool call, and where it was made. */
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

/** Whether tools run freely, only with the user's approval, or never; and the effect of a call. */
export interface ToolRuleView {
  access?: ToolAccess;
  effect?: ToolEffect;
}

/** A turn runs, may wait for its user, and ends in one of three ways. */
export type TurnStatus = "CANCELLED" | "COMPLETED" | "FAILED" | "RUNNING" | "WAITING";

/** A turn's status. */
export interface TurnView {
  id: string;
  runId: string | null;
  conversationId: string;
  userMessageId: string;
  assistantMessageId: string;
  status: TurnStatus;
  waitsFor?: "person" | "worker" | null;
  model: string | null;
  startedAt: string;
  endedAt: string | null;
  usage: UsageView | null;
  cost?: CostView | null;
  error: FailureView | null;
}

/** An account with a provider. */
export interface UnsavedGatewayBody {
  kind: GatewayKind;
  url?: string | null;
  apiKey?: string | null;
  models?: (string | ListedModelBody)[];
  defaultModel?: string | null;
}

/** A file for a message. */
export interface UploadedFileView {
  id: string;
  fileName: string;
  mediaType: string;
  size: number;
  width?: number | null;
  height?: number | null;
}

/** The files, in the order in which they were sent. */
export interface UploadedFilesView {
  items: UploadedFileView[];
}

/** Usage in groups, ordered by what they are grouped by, and your budgets. */
export interface UsageReportView {
  nextCursor?: null;
  items: UsageSumView[];
  budgets?: BudgetView[];
}

/** The model calls of one group: those that share the values of `by` (date, agent and so on).

    `inputTokens` counts all input; `cacheReadTokens` is the part of it that the provider read from its cache.
    `estimated` if some numbers are estimates. */
export interface UsageSumView {
  date?: string;
  userId?: string;
  agentId?: string | null;
  keyId?: string | null;
  model?: string | null;
  purpose?: string;
  turns: number;
  calls?: number;
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  estimated: boolean;
  cost?: CostView | null;
  unpricedCalls?: number;
  reportedCalls?: number;
  reportedCost?: CostView | null;
}

/** Tokens spent; `estimated` if the provider gave no numbers.

    `inputTokens` counts all of the input, including what the provider read from its cache or wrote to it. */
export interface UsageView {
  inputTokens: number;
  outputTokens: number;
  cacheReadTokens: number;
  cacheWriteTokens: number;
  estimated: boolean;
}

/** `admin` manages agents and users; it does not open other people's conversations. */
export type UserRole = "admin" | "user";

/** A message that steered the turn, at the point where it joined. */
export interface UserTextPartView {
  type: "user_text";
  messageId: string;
  text: string;
  iteration: number;
  superseded?: boolean;
}

/** Who may talk to an agent: its owner, or everyone. */
export type Visibility = "private" | "public";

/** A turn that is waiting for its user. */
export interface WaitingTurnView {
  status: "WAITING";
  turnId: string;
  approvals: ApprovalView[];
}

/** What to do with a message that arrives while the agent replies. */
export type WhenBusy = "queue" | "reject" | "steer" | "stop";

/** A process that runs the programs of agents in code; of the server itself, one for each node.

    `capacity` is how many turns it runs at once, `null` without a limit. `blockedMs`: for how long its event
    loop had not answered when it was heard of last; after ten seconds it gets no new turns. */
export interface WorkerView {
  id: string;
  name: string;
  node: string;
  sdk: string;
  agents: ProgramView[];
  capacity: number | null;
  running: number;
  connectedAt: string;
  lastBeatAt: string;
  blockedMs: number;
  isDraining: boolean;
}

/** All workers, on all nodes, the oldest first. */
export interface WorkersView {
  nextCursor?: null;
  items: WorkerView[];
}
