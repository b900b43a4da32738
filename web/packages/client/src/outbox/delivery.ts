/** One attempt to bring an entry to the server, and what follows from its outcome. */

import { ApiError, missingFileIn, Unreachable } from "../errors.ts";
import { type ConversationView } from "../schema.ts";
import { type Entries } from "./entries.ts";
import { laneOf, tellingRefusal, withoutCopy, type OutboxEntry, type OutgoingMessage } from "./entry.ts";
import { type Became, type OtherTabs, type OutboxTransport, type Refusal, type SentView } from "./ports.ts";
import { verdictOn } from "./verdict.ts";

export type OutboxEvent =
  | { type: "waiting"; entry: OutboxEntry; unreachable: boolean }
  /** The conversation of a first message exists. */
  | { type: "created"; entry: OutgoingMessage; conversation: ConversationView }
  /** The server has it; without an outcome, a tab sent it that was closed before it could say more. */
  | { type: "sent"; entry: OutboxEntry; outcome: SentView | null }
  /** The server will never accept it. `isElsewhere`: another tab got the refusal, and has returned the text. */
  | { type: "refused"; entry: OutboxEntry; error: unknown; isElsewhere?: true }
  /** Its user withdrew it; `isElsewhere`: in another tab, where the text is. */
  | { type: "withdrawn"; entry: OutboxEntry; isElsewhere?: true };

/** What the lane does next: send its next entry, end, end until somebody signs in, or wait before it tries again. */
export type NextStep = "more" | "done" | "signed-out" | { afterMs: number };

export class Delivery {
  constructor(
    private readonly entries: Entries,
    private readonly transport: OutboxTransport,
    private readonly tabs: OtherTabs,
    private readonly emit: (event: OutboxEvent) => void,
  ) {}

  /** One attempt at the first entry of a lane. The caller makes sure that no other tab makes one. */
  async attempt(lane: string, signal: AbortSignal): Promise<NextStep> {
    if (signal.aborted) return "done";
    const [item] = this.entries.inLane(lane);
    if (!item) return "done";
    const latest = await this.entries.latest(item);
    if (!latest) {
      // Another tab has sent it while this one waited, and said so unless it was closed.
      this.goneElsewhere(item.entry.id);
      return "more";
    }
    if (signal.aborted) return "done";
    this.entries.update(latest);
    try {
      await this.#checkServer(latest);
      const entry = await this.#prepared(latest, signal);
      if (!entry) return "more";
      const outcome = await this.transport.send(entry);
      await this.entries.remove(entry.id, { type: "sent", outcome, conversationId: entry.conversationId });
      this.entries.forget(entry.id);
      if (!signal.aborted) this.emit({ type: "sent", entry, outcome });
      return "more";
    } catch (error) {
      return signal.aborted ? "done" : this.#failed(item.entry.id, error, signal);
    }
  }

  /** Another tab has sent it, got a refusal or withdrew it. */
  goneElsewhere(id: string, became?: Became): void {
    const item = this.entries.get(id);
    this.entries.forget(id);
    if (!item) return;
    const { entry } = item;
    if (became?.type === "refused") this.emit({ type: "refused", entry, error: errorOf(became.error), isElsewhere: true });
    else if (became?.type === "withdrawn") this.emit({ type: "withdrawn", entry, isElsewhere: true });
    else this.emit({ type: "sent", entry: placed(entry, became?.conversationId), outcome: became?.outcome ?? null });
  }

  /** Another server may have taken the place of the one that the entry is for: it gets nothing. */
  async #checkServer({ account: { installation } }: OutboxEntry): Promise<void> {
    if (installation === undefined || !this.transport.installation) return;
    if ((await this.transport.installation()) !== installation) throw new Unreachable("another server responds");
  }

  /** The entry with what it needs on the server: its files and its conversation. Each step is stored.

  Null if it was withdrawn meanwhile. */
  async #prepared(entry: OutboxEntry, signal: AbortSignal): Promise<OutboxEntry | null> {
    if (entry.kind === "answer") return entry;
    let ready = entry;
    for (const file of entry.files) {
      if (file.kept) continue;
      const kept = await this.transport.upload(file);
      ready = { ...ready, files: ready.files.map((it) => (it.key === file.key ? { ...it, kept } : it)) };
      if (!(await this.entries.keep(ready, signal))) return null;
    }
    if (ready.conversationId !== null) return ready;
    const conversation = await this.transport.create(ready.agentId, ready.id);
    ready = { ...ready, conversationId: conversation.id };
    if (!(await this.entries.keep(ready, signal))) return null;
    this.emit({ type: "created", entry: ready, conversation });
    return ready;
  }

  async #failed(id: string, error: unknown, signal: AbortSignal): Promise<NextStep> {
    const item = this.entries.get(id);
    if (!item) return "more"; // withdrawn meanwhile
    const uploadsAgain = withoutCopy(item.entry, missingFileIn(error));
    if (uploadsAgain) {
      await this.entries.keep(uploadsAgain, signal);
      return "more";
    }
    const failures = item.failures + 1;
    const verdict = verdictOn(error, failures);
    if (verdict.kind === "final") {
      const told = tellingRefusal(item.entry, error);
      if (told) {
        await this.entries.keep(told, signal);
        return "more";
      }
      this.entries.forget(id);
      // Listeners return the text before the entry is removed, so that it is always in at least one place.
      this.emit({ type: "refused", entry: item.entry, error });
      await this.entries.remove(id, { type: "refused", error: { ...verdict.error, message: verdict.error.message } });
      return "more";
    }
    this.entries.update(item.entry, { failures });
    const unreachable = !(error instanceof ApiError);
    for (const { entry } of this.entries.inLane(laneOf(item.entry))) {
      this.entries.update(entry, { state: "waiting" });
      this.emit({ type: "waiting", entry, unreachable });
    }
    if (failures === 1) this.tabs.tell({ type: "waiting" });
    return verdict.kind === "again" ? { afterMs: verdict.afterMs } : "signed-out";
  }
}

/** The entry in the conversation that another tab has created for it. */
function placed(entry: OutboxEntry, conversationId: string | null | undefined): OutboxEntry {
  return entry.kind === "message" && conversationId ? { ...entry, conversationId } : entry;
}

function errorOf(told: Refusal): ApiError {
  return Object.assign(new ApiError(told.status, told.code, told.message), told);
}
