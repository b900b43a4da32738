/** Conversations for programs: each call is one request, or a stream that resumes by itself.

A front end uses `FrontEnd`, which keeps what a person sees. The names are those of the Python client. */

import { ApiClient, freshKey, type ApiClientOptions } from "./api-client.ts";
import { resultOf, type ClientTool } from "./client-tools.ts";
import { defaultAgentId } from "./default-agent.ts";
import { ApiError, MessageQueued, TurnWaiting, Unreachable } from "./errors.ts";
import { type SentView } from "./outbox/ports.ts";
import { verdictOn } from "./outbox/verdict.ts";
import { postOnce, repeated } from "./post-once.ts";
import { refusedResult } from "./refused-result.ts";
import {
  type AbortView,
  type AgentBody,
  type AgentView,
  type AnswerBody,
  type ApprovalsView,
  type ApprovalView,
  type ConversationBody,
  type ConversationDetailView,
  type ConversationPatch,
  type ConversationView,
  type MessageBody,
  type MessageView,
  type MeView,
  type ModelsView,
  type ModelView,
  type QueuedMessageView,
  type RegenerateBody,
  type StartedTurnView,
  type StepView,
  type TurnView,
} from "./schema.ts";
import { eventsOf } from "./sse.ts";
import { type TurnEvent } from "./turn/events.ts";
import { filePath, uploadFile, type KeptFile } from "./turn/files.ts";
import { turnEvents, type FollowOptions } from "./turn/follow.ts";

const ACCEPTED = 202;

export interface ClientSendOptions extends Omit<MessageBody, "content" | "files" | "tools"> {
  /** Tools that run here while the turn is followed. */
  tools?: readonly ClientTool[];
  /** Uploaded before the message is sent; or what `uploadFile` returned. */
  files?: readonly (Blob | KeptFile)[];
  /** The same key and message never begin a second turn. */
  key?: string;
}

export interface ClientFollowOptions extends FollowOptions {
  tools?: readonly ClientTool[];
}

export class Client {
  readonly api: ApiClient;

  constructor(options: ApiClientOptions) {
    this.api = new ApiClient(options);
  }

  me(): Promise<MeView> {
    return this.api.get("/api/me");
  }

  // Agents and models.

  agents(): AsyncGenerator<AgentView, undefined> {
    return this.api.list("/api/agents");
  }

  createAgent(body: AgentBody): Promise<AgentView> {
    return this.api.send("POST", "/api/agents", body);
  }

  /** The models that an agent lets its users choose; without one, all that the server offers. */
  async models(agentId?: string): Promise<ModelView[]> {
    return (await this.api.get<ModelsView>("/api/models", { agentId })).items;
  }

  // Conversations.

  conversations(query: { agentId?: string; status?: "active" | "archived" | "deleted" } = {}): AsyncGenerator<ConversationView, undefined> {
    return this.api.list("/api/conversations", query);
  }

  /** A new conversation with an agent; with the default one if none is given. */
  async createConversation(agentId?: string, body: ConversationBody = {}): Promise<ConversationView> {
    return postOnce(this.api, `/api/agents/${agentId ?? (await defaultAgentId(this.api))}/conversations`, body);
  }

  /** The user's main conversation with an agent, or the default one; created if there is none. */
  async mainConversation(agentId?: string): Promise<ConversationView> {
    return this.api.send("PUT", `/api/agents/${agentId ?? (await defaultAgentId(this.api))}/conversation`);
  }

  /** A conversation with its latest messages and its queue. */
  conversation(id: string): Promise<ConversationDetailView> {
    return this.api.get(conversationPath(id));
  }

  updateConversation(id: string, patch: ConversationPatch): Promise<ConversationView> {
    return this.api.send("PATCH", conversationPath(id), patch);
  }

  deleteConversation(id: string): Promise<void> {
    return this.api.send("DELETE", conversationPath(id));
  }

  /** The messages of the active path, oldest first. */
  messages(id: string, query: { order?: "asc" | "desc"; include?: "overwritten" } = {}): AsyncGenerator<MessageView, undefined> {
    return this.api.list(`${conversationPath(id)}/messages`, query);
  }

  // Turns.

  /** Sends a message and yields the turn's events until it ends. If the connection breaks, it goes on where it was.

  A turn that asks its user sends `approval_request`: `answer` it, and further events follow. Leaving the loop does not
  stop the turn; `abort` does. */
  async *send(conversationId: string, content: string, options?: ClientSendOptions): AsyncGenerator<TurnEvent, undefined> {
    const { turnId } = await this.start(conversationId, content, options);
    yield* this.follow(turnId, { tools: options?.tools });
  }

  /** Sends a message and waits for the whole answer, however it ends: check its `status`.

  Throws `TurnWaiting` if the turn asks its user: `answer` its requests, then `reply` returns the answer. */
  async ask(conversationId: string, content: string, options?: ClientSendOptions): Promise<MessageView> {
    const { turnId } = await this.start(conversationId, content, options);
    return this.reply(turnId, options);
  }

  /** Sends a message without waiting; `follow` yields its events. Throws `MessageQueued` if others go first. */
  async start(conversationId: string, content: string, options?: ClientSendOptions): Promise<StartedTurnView> {
    const sent = await this.post(conversationId, content, options);
    if ("messageId" in sent) throw new MessageQueued(sent.messageId);
    return sent;
  }

  /** Sends a message, with `whenBusy` also while a turn runs; whether it began a turn, is queued, or steers one. */
  async post(conversationId: string, content: string, { files = [], tools = [], key, ...options }: ClientSendOptions = {}): Promise<SentView> {
    const kept = await Promise.all(files.map((file) => ("fileId" in file ? file : this.uploadFile(file))));
    const body: MessageBody = { content, ...(kept.length && { files: kept.map(({ fileId }) => fileId) }), ...(tools.length && { tools: [...tools] }), ...options };
    const path = `${conversationPath(conversationId)}/messages`;
    if (options.onDisconnect !== "stop") return postOnce(this.api, path, body, { key });
    return repeated(this.api, () => this.#beginFollowed(path, body, key));
  }

  /** Begins a turn that ends when nobody follows it. Only a streamed response may ask for that; `follow` takes its place. */
  async #beginFollowed(path: string, body: MessageBody, key = freshKey()): Promise<SentView> {
    const leaving = new AbortController();
    const headers = { Accept: "text/event-stream", "Idempotency-Key": key };
    try {
      const response = await this.api.request(path, { method: "POST", body, headers, signal: leaving.signal });
      if (response.status === ACCEPTED) return (await response.json()) as SentView; // others go first
      for await (const events of eventsOf<TurnEvent>(response))
        for (const event of events)
          if (event.type === "turn_start")
            return { turnId: event.turn_id, userMessageId: event.user_message_id, assistantMessageId: event.message_id };
      throw new Unreachable("the stream ended before its first event");
    } finally {
      leaving.abort();
    }
  }

  /** Answers again, beside the old answer: the latest one, or `messageId`. */
  async *regenerate(conversationId: string, body: RegenerateBody = {}): AsyncGenerator<TurnEvent, undefined> {
    const { turnId } = await postOnce<StartedTurnView>(this.api, `${conversationPath(conversationId)}/regenerate`, body);
    yield* this.follow(turnId);
  }

  /** The events of a turn, from the first one or `after` one, until it ends. Calls of `tools` run here. */
  async *follow(turnId: string, { tools = [], ...options }: ClientFollowOptions = {}): AsyncGenerator<TurnEvent, undefined> {
    for await (const event of turnEvents(this.api, turnId, options)) {
      yield event;
      if (event.type !== "approval_request" || event.kind !== "client_tool" || !tools.length) continue;
      const request = await this.#open(event.request_id);
      if (request) await this.#run(request, tools);
    }
  }

  /** The whole answer of a turn once it has ended. Calls of `tools` run here. Throws `TurnWaiting` if the turn asks its user. */
  async reply(turnId: string, { tools = [] }: Pick<ClientFollowOptions, "tools"> = {}): Promise<MessageView> {
    for await (const event of this.follow(turnId)) {
      const request = event.type === "approval_request" && (await this.#open(event.request_id));
      if (request && !(await this.#run(request, tools)))
        throw new TurnWaiting(turnId, (await this.approvals()).filter((it) => it.turnId === turnId));
    }
    const { conversationId, assistantMessageId } = await this.turn(turnId);
    for await (const message of this.messages(conversationId, { order: "desc", include: "overwritten" }))
      if (message.id === assistantMessageId) return message;
    throw new Error(`turn ${turnId} has no message`);
  }

  turn(turnId: string): Promise<TurnView> {
    return this.api.get(`/api/turns/${turnId}`);
  }

  /** What an agent in code did in a turn, in order of begin; results too, with `values`, if its insides are yours to see. */
  steps(turnId: string, query: { values?: true } = {}): AsyncGenerator<StepView, undefined> {
    return this.api.list(`/api/turns/${turnId}/steps`, query);
  }

  /** Stops the turn that runs in a conversation; what it has written stays. */
  abort(conversationId: string): Promise<AbortView> {
    return this.api.send("POST", `${conversationPath(conversationId)}/abort`);
  }

  // What turns ask their user.

  /** The open requests in all conversations, oldest first. */
  async approvals(): Promise<ApprovalView[]> {
    return (await this.api.get<ApprovalsView>("/api/approvals")).items;
  }

  /** Answers a request; the turn continues. The same answer again changes nothing. */
  answer({ turnId, requestId }: Pick<ApprovalView, "turnId" | "requestId">, body: AnswerBody): Promise<TurnView> {
    return postOnce(this.api, `/api/turns/${turnId}/approvals/${requestId}`, body);
  }

  async #open(requestId: string): Promise<ApprovalView | undefined> {
    return (await this.approvals()).find((it) => it.requestId === requestId);
  }

  /** Runs the call that a request is about and sends its result; false if none of the tools can. */
  async #run(request: ApprovalView, tools: readonly ClientTool[]): Promise<boolean> {
    const { kind, toolName, toolCallId = "", conversationId, turnId, arguments: input = {} } = request;
    const run = kind === "client_tool" && tools.find(({ name }) => name === toolName)?.run;
    if (!run) return false;
    const result = await resultOf(run, input, { conversationId, turnId, toolCallId });
    await this.answer(request, result).catch((error: unknown) => this.#tellRefusal(request, error));
    return true;
  }

  /** Tells a turn why its tool's result was refused; any other error is thrown on. */
  async #tellRefusal(request: ApprovalView, error: unknown): Promise<void> {
    if (!(error instanceof ApiError) || verdictOn(error, 1).kind !== "final") throw error;
    const instead = refusedResult(error);
    if (instead) await this.answer(request, instead);
  }

  // Branches.

  /** Makes the branch through a message the active path. */
  choosePath(conversationId: string, messageId: string): Promise<void> {
    return this.api.send("POST", `${conversationPath(conversationId)}/path`, { messageId });
  }

  /** A new conversation with everything up to a message. */
  fork(conversationId: string, messageId: string): Promise<ConversationView> {
    return this.api.send("POST", `${conversationPath(conversationId)}/fork`, { messageId });
  }

  // The queue.

  /** The messages that wait for their turn, the next one first. */
  async queued(conversationId: string): Promise<QueuedMessageView[]> {
    return (await this.conversation(conversationId)).queued ?? [];
  }

  editQueued(conversationId: string, messageId: string, content: string): Promise<QueuedMessageView> {
    return this.api.send("PATCH", `${conversationPath(conversationId)}/queued/${messageId}`, { content });
  }

  removeQueued(conversationId: string, messageId: string): Promise<void> {
    return this.api.send("DELETE", `${conversationPath(conversationId)}/queued/${messageId}`);
  }

  /** Sends a held message now; the others follow it. */
  sendHeld(conversationId: string, messageId: string): Promise<StartedTurnView> {
    return postOnce(this.api, `${conversationPath(conversationId)}/queued/${messageId}/send`);
  }

  // Files.

  /** Uploads a file for messages; a `File` brings its name. */
  uploadFile(file: Blob): Promise<KeptFile> {
    return uploadFile(this.api, file);
  }

  /** A file's content. */
  async readFile(fileId: string): Promise<Blob> {
    return (await this.api.request(filePath(fileId), { headers: { Accept: "*/*" } })).blob();
  }
}

function conversationPath(id: string): string {
  return `/api/conversations/${id}`;
}
