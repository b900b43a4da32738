/** Tools that run here: the model calls them, the turn waits, and the client sends what they return. */

import { type AnswerBody, type ClientToolBody } from "./schema.ts";
import { Store } from "./store.ts";

export interface ClientTool extends ClientToolBody {
  description: string;
  /** What it takes: a JSON schema of an object. */
  parameters: Record<string, unknown>;
  /** Runs a call; what it returns is sent as JSON, and what it throws as the reason of its failure.

  Without it the request stays open until somebody answers it with `{ action: "result", … }`. */
  run?: (input: Record<string, unknown>, call: ClientToolCall) => unknown;
}

/** Which call it is: a function that a reload interrupted runs again, with the same ids. */
export interface ClientToolCall {
  conversationId: string;
  turnId: string;
  toolCallId: string;
}

/** The tools that a front end offers with every message. */
export class ClientTools {
  readonly all = new Store<readonly ClientTool[]>([]);

  /** Offers a tool until the returned function is called. */
  add(tool: ClientTool): () => void {
    this.all.update((all) => [...all, tool]);
    return () => this.all.update((all) => all.filter((it) => it !== tool));
  }

  /** The one that was added last under this name. */
  get(name: string): ClientTool | undefined {
    return this.all.get().findLast((it) => it.name === name);
  }

  /** What the server is told of them, as a part of a request. */
  get offered(): { tools?: ClientToolBody[] } {
    const names = new Set(this.all.get().map(({ name }) => name));
    const tools = [...names].map((name) => {
      const { description, parameters } = this.get(name)!;
      return { name, description, parameters };
    });
    return tools.length ? { tools } : {};
  }
}

/** Runs a call; what to answer its request with. */
export async function resultOf(run: NonNullable<ClientTool["run"]>, input: Record<string, unknown>, call: ClientToolCall): Promise<AnswerBody> {
  try {
    return { action: "result", content: (await run(input, call)) ?? null };
  } catch (error) {
    return { action: "result", error: (error instanceof Error && error.message) || String(error) };
  }
}
