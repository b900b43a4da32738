/** Tools that run here: the model calls them, the turn waits, and the client sends what they return. */

import { jsonValue } from "./json-value.ts";
import { type Outbox } from "./outbox/outbox.ts";
import { type OtherTabs } from "./outbox/ports.ts";
import { type AnswerBody, type ApprovalsView, type CallApprovalView, type ClientToolBody } from "./schema.ts";
import { Store } from "./store.ts";
import { type ThreadContext } from "./thread/context.ts";
import { type PartOf } from "./turn/parts.ts";
import { openClientCalls } from "./turn/requests.ts";

export interface ClientTool extends ClientToolBody {
  description: string;
  /** What it takes: a JSON schema of an object. */
  parameters: Record<string, unknown>;
  /** Runs a call; what it returns is sent as JSON, and what it throws as the reason of its failure.

  A result that is not JSON, or that the server refuses, becomes a failure too, which says why.

  Without it the request stays open until somebody answers it with `{ action: "result", … }`. */
  run?: (input: Record<string, unknown>, call: ClientToolCall) => unknown;
}

/** Which call it is: a function that a reload interrupted runs again, with the same ids. */
export interface ClientToolCall {
  conversationId: string;
  turnId: string;
  toolCallId: string;
}

const NO_REASON = "The tool failed.";

/** The tools that a front end offers with every message. */
export class ClientTools {
  readonly all = new Store<readonly ClientTool[]>([]);
  /** The requests whose calls were taken up here. */
  #begun = new Set<string>();

  /** Offers a tool until the returned function is called. */
  add(tool: ClientTool): () => void {
    this.all.update((all) => [...all, tool]);
    return () => this.all.update((all) => all.filter((it) => it !== tool));
  }

  /** The one that was added last under this name. */
  get(name: string): ClientTool | undefined {
    return this.all.get().findLast((it) => it.name === name);
  }

  /** Runs what is called in a conversation while it is shown, and what waits since before. */
  attend(thread: ThreadContext, outbox: Outbox, alone: OtherTabs["alone"] = (_, work) => work()): void {
    new ClientCalls(this, this.#begun, thread, outbox, alone);
  }

  /** What the server learns of them, as a part of a request. */
  get offered(): { tools?: ClientToolBody[] } {
    const names = new Set(this.all.get().map(({ name }) => name));
    const tools = [...names].map((name) => {
      const { description, parameters } = this.get(name)!;
      return { name, description, parameters };
    });
    return tools.length ? { tools } : {};
  }
}

/** Runs the calls in an open conversation, each once, and sends their results. */
class ClientCalls {
  constructor(
    private readonly tools: ClientTools,
    private readonly begun: Set<string>,
    private readonly thread: ThreadContext,
    private readonly outbox: Outbox,
    private readonly alone: OtherTabs["alone"],
  ) {
    for (const store of [thread.state, tools.all]) thread.signal.addEventListener("abort", store.subscribe(() => this.#look()));
  }

  #look(): void {
    const { live } = this.thread.current;
    if (!live?.message.turnId) return;
    for (const call of openClientCalls(live.message.parts)) void this.#run(live.message.turnId, call, call.clientRequest);
  }

  async #run(turnId: string, { toolName, toolCallId, arguments: input }: PartOf<"tool_call">, { requestId }: CallApprovalView): Promise<void> {
    const run = this.tools.get(toolName)?.run;
    if (!run || this.begun.has(requestId)) return;
    this.begun.add(requestId);
    const conversationId = this.thread.id;
    await this.alone(`tool.${requestId}`, async () => {
      if (!(await this.#isOpen(requestId))) return;
      const body = await resultOf(run, input, { conversationId, turnId, toolCallId });
      const delivered = this.outbox.deliver({ kind: "answer", conversationId, turnId, requestId, body, tellsRefusal: true });
      await delivered.catch(() => {}); // the turn knows, or is over: either way, the tool doesn't run again
    }).catch(() => this.begun.delete(requestId)); // the server was away: it is looked at again when that is back
  }

  /** Whether nobody has an answer yet: another tab, or this page before it was reloaded. */
  async #isOpen(requestId: string): Promise<boolean> {
    if (this.outbox.items.get().some(({ entry }) => entry.kind === "answer" && entry.requestId === requestId)) return false;
    const { items } = await this.thread.api.get<ApprovalsView>("/api/approvals");
    return items.some((it) => it.requestId === requestId);
  }
}

/** Runs a call; what to answer its request with. */
export async function resultOf(run: NonNullable<ClientTool["run"]>, input: Record<string, unknown>, call: ClientToolCall): Promise<AnswerBody> {
  let content: unknown;
  try {
    content = await run(input, call);
  } catch (error) {
    return { action: "result", error: reasonOf(error) };
  }
  try {
    return { action: "result", content: jsonValue(content) };
  } catch (error) {
    const [reason] = reasonOf(error).split("\n"); // about a cycle, some engines write a drawing below it
    return { action: "result", error: `The tool has run, but its result can't be sent: ${reason}` };
  }
}

function reasonOf(error: unknown): string {
  try {
    return String((error instanceof Error && error.message) || error).trim() || NO_REASON;
  } catch {
    return NO_REASON; // not even a text can be made of it
  }
}
