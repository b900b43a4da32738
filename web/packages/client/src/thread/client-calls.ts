/** Runs the calls of tools that are ours, each once, and sends their results. */

import { resultOf, type ClientTools } from "../client-tools.ts";
import { type Outbox } from "../outbox/outbox.ts";
import { type OtherTabs } from "../outbox/ports.ts";
import { type ApprovalsView, type CallApprovalView } from "../schema.ts";
import { type PartOf } from "../turn/parts.ts";
import { openClientCalls } from "../turn/requests.ts";
import { type ThreadContext } from "./context.ts";

export interface ClientCallsOptions {
  outbox: Outbox;
  tools?: ClientTools;
  /** Runs `work` while no other tab runs work of the same name. */
  alone?: OtherTabs["alone"];
}

export class ClientCalls {
  /** The requests whose calls this tab has taken up. */
  #begun = new Set<string>();

  constructor(
    private readonly thread: ThreadContext,
    private readonly options: ClientCallsOptions,
  ) {}

  /** Runs what is called from now on, and what waits since before, as soon as its tool is there. */
  watch(): void {
    const { tools } = this.options;
    if (!tools) return;
    for (const store of [this.thread.state, tools.all])
      this.thread.signal.addEventListener("abort", store.subscribe(() => this.#look()));
  }

  #look(): void {
    const { live } = this.thread.current;
    if (!live?.message.turnId) return;
    for (const call of openClientCalls(live.message.parts)) void this.#run(live.message.turnId, call, call.clientRequest);
  }

  async #run(turnId: string, { toolName, toolCallId, arguments: input }: PartOf<"tool_call">, { requestId }: CallApprovalView): Promise<void> {
    const { outbox, tools, alone = (_, work) => work() } = this.options;
    const run = tools?.get(toolName)?.run;
    if (!run || this.#begun.has(requestId)) return;
    this.#begun.add(requestId);
    const conversationId = this.thread.id;
    await alone(`tool.${requestId}`, async () => {
      if (!(await this.#isOpen(requestId))) return;
      const body = await resultOf(run, input, { conversationId, turnId, toolCallId });
      await outbox.deliver({ kind: "answer", conversationId, turnId, requestId, body });
    }).catch(() => {}); // another client was faster, or the turn has ended
  }

  /** Whether nobody has an answer yet: another tab, or this page before it was reloaded. */
  async #isOpen(requestId: string): Promise<boolean> {
    if (this.options.outbox.items.get().some(({ entry }) => entry.kind === "answer" && entry.requestId === requestId)) return false;
    const { items } = await this.thread.api.get<ApprovalsView>("/api/approvals");
    return items.some((it) => it.requestId === requestId);
  }
}
