/** What a front end keeps while somebody uses it: their lists, what they have sent, and the conversations they open. */

import { ApiClient, type ApiClientOptions } from "./api-client.ts";
import { type ClientTools } from "./client-tools.ts";
import { NO_COPIES, type Copies } from "./copies.ts";
import { ApiError, problemOf, suspenderIn, type Problem } from "./errors.ts";
import { coalesced } from "./lists/coalesced.ts";
import { ConversationList } from "./lists/conversation-list.ts";
import { OpenApprovals } from "./lists/open-approvals.ts";
import { MemoryStore } from "./outbox/memory-store.ts";
import { Outbox } from "./outbox/outbox.ts";
import { serverTransport, type ServerTransportOptions } from "./outbox/server-transport.ts";
import { type Platform } from "./platform.ts";
import { type MeView } from "./schema.ts";
import { Store } from "./store.ts";
import { Thread, type ThreadOptions } from "./thread/thread.ts";
import { UserEvents, type UserEvent } from "./user-events.ts";

const ASK_AGAIN_AFTER_MS = 2000;
const SIGNED_OUT: Problem = { code: "UNAUTHENTICATED", message: "You are signed out. Sign in again." };

export type FrontEndOptions = (ApiClientOptions | { api: ApiClient }) &
  ServerTransportOptions & {
    platform?: Platform;
    /** What the model may call here. */
    tools?: ClientTools;
  };

export class FrontEnd {
  readonly api: ApiClient;
  readonly events: UserEvents;
  readonly outbox: Outbox;
  readonly conversations: ConversationList;
  readonly approvals: OpenApprovals;
  /** What the model may call here. */
  readonly tools: ClientTools | undefined;
  /** Whether who the user is is known, so that something can be sent. */
  readonly isStarted = new Store(false);
  /** Why the server does not know the user: nobody has signed in, or the token is no longer valid. Null while it does. Call `start`
  again when somebody has signed in. */
  readonly signedOut = new Store<Problem | null>(null);
  #platform: Platform;
  #copies: Copies;
  #closing = new AbortController();

  constructor({ platform = {}, ...options }: FrontEndOptions) {
    const { store = new MemoryStore(), copies = NO_COPIES, tabs, pause, followUserEvents } = platform;
    this.#platform = platform;
    this.#copies = copies;
    this.api = "api" in options ? options.api : this.#clientFor({ ...(pause && { pause }), ...options });
    this.events = new UserEvents(this.api, followUserEvents);
    const { tools } = options;
    this.tools = tools;
    const transport = serverTransport(this.api, options);
    this.outbox = new Outbox({ store, transport, tools, pause: this.api.pause, ...(tabs && { tabs }) });
    this.conversations = new ConversationList(this.api, copies);
    this.approvals = new OpenApprovals(this.api);
  }

  /** Sends what the user writes and keeps the lists up to date, until `stop`; who the user is is asked if not given.

  Given a user, give the `installation` of `GET /api/me`, too: without it, another server at the same address gets what was
  written for this one. */
  async start(userId?: string, installation?: string): Promise<void> {
    this.stop();
    this.#closing = new AbortController();
    const { signal } = this.#closing;
    const me = userId === undefined ? await this.#me(signal) : { id: userId, installation };
    if (me === null || signal.aborted) return;
    const { id } = me;
    this.keepFresh(this.conversations.refresh, ({ type, conversationId = "" }) => {
      if (type === "conversation_deleted") this.conversations.drop(conversationId);
      return type.startsWith("conversation_") || type.startsWith("turn_");
    });
    this.keepFresh(this.approvals.refresh, ({ type }) => type.startsWith("approval_") || type.startsWith("turn_"));
    this.events.start(id);
    this.#platform.onReturn?.(() => this.outbox.retry(), signal);
    await this.outbox.start({ server: this.api.address, userId: id, ...(me.installation && { installation: me.installation }) });
    if (!signal.aborted) this.isStarted.set(true);
  }

  /** Forgets the user's lists; what was not sent stays stored. */
  stop(): void {
    this.#closing.abort();
    this.isStarted.set(false);
    this.signedOut.set(null);
    this.events.stop();
    this.outbox.stop();
    this.conversations.forget();
    this.approvals.forget();
  }

  /** Reads something now, again when an event concerns it, and when the user returns; until `stop`. */
  keepFresh(refresh: () => Promise<void>, concerns: (event: UserEvent) => boolean): void {
    const { signal } = this.#closing;
    const read = coalesced(refresh, signal);
    const unlisten = this.events.on((event) => {
      if (concerns(event) || event.type === "reset") read();
    });
    signal.addEventListener("abort", unlisten);
    this.#platform.onReturn?.(read, signal);
    read();
  }

  /** A conversation to show: `join` it when it appears, `leave` it when it disappears. */
  open(id: string, options: Pick<ThreadOptions, "onFileMissing"> = {}): Thread {
    const { onReturn, atNextFrame, tabs } = this.#platform;
    const { api, events, outbox, tools } = this;
    const onTurnEnded = (turnId: string) => this.conversations.markTurnEnded(turnId);
    return new Thread(id, { api, events, outbox, tools, copies: this.#copies, alone: tabs?.alone, onReturn, atNextFrame, onTurnEnded, ...options });
  }

  #clientFor(options: ApiClientOptions): ApiClient {
    const onUnauthorized: ApiClientOptions["onUnauthorized"] = (error) => {
      if (this.isStarted.get()) this.signedOut.set(suspenderIn(error) ? problemOf(error) : SIGNED_OUT);
      this.isStarted.set(false);
      options.onUnauthorized?.(error);
    };
    return new ApiClient({ ...options, onUnauthorized });
  }

  /** The user, once the server has answered; null if nobody is signed in. */
  async #me(signal: AbortSignal): Promise<Pick<MeView, "id"> & Partial<MeView> | null> {
    while (!signal.aborted) {
      try {
        return await this.api.get<MeView>("/api/me", {}, signal);
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) {
          if (!signal.aborted) this.signedOut.set(problemOf(error));
          return null;
        }
        await this.api.pause(ASK_AGAIN_AFTER_MS, signal);
      }
    }
    return null;
  }
}
