/** The outbox of this page: what the user sends goes through it, and gets back what the server refuses. */

import { ApiError, Unreachable, freshKey, send } from "../../packages/client/src/api-client";
import { type AgentView, type ConversationView, type MessageBody, type QueuedView, type StartedTurnView, type SteeredView } from "../../packages/client/src/schema";
import { pause } from "../../packages/client/src/sse";
import { BrowserStore } from "./browser-store";
import { type Entry, type OutgoingFile, type OutgoingMessage } from "../../packages/client/src/outbox/entry";
import { Outbox, type Item, type NewEntry, type OutboxEvent, type TabNews } from "../../packages/client/src/outbox/outbox";
import { type Failure } from "../../packages/client/src/outbox/verdict";
import { type KeptFile } from "../../packages/client/src/turn/files";
import { agents, refreshAgents } from "./agents";
import { keepFiles } from "./attachments";
import { returnDraft } from "./drafts";
import { Store } from "./store";

/** The outcome of sending: the message started a turn, is queued, or joins the running turn. */
export type SentView = StartedTurnView | QueuedView | SteeredView;

export type PageOutboxEvent = OutboxEvent<ConversationView, SentView>;

/** What is not sent yet, in order. */
export const unsent = new Store<readonly Item[]>([]);

/** Taking a message takes a server milliseconds; a connection that says nothing for this long is dead. */
const PATIENCE_MS = 40_000;

/** Tabs of other servers below another path are not concerned. */
const server = () => new URL(".", document.baseURI).href;
const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(`threadkeep.outbox.${server()}`);

export const outbox = new Outbox<ConversationView, SentView>(
  new BrowserStore(),
  { upload: uploaded, create, send: post, failureIn, missingFile },
  {
    freshId: freshKey,
    now: Date.now,
    pause,
    alone: (name, work) => (navigator.locks ? navigator.locks.request(`threadkeep.outbox.${server()}${name}`, work) : work()),
    tell: (news) => channel?.postMessage(news),
  },
  (items) => unsent.set(items),
);

channel?.addEventListener("message", ({ data }: MessageEvent) => void outbox.heard(data as TabNews));
outbox.on((event) => {
  if (event.type === "refused") giveBack(event.entry, event.error);
  if (event.type === "withdrawn") giveBack(event.entry);
});

/** Sends as this user until the returned function is called. */
export function startOutbox(userId: string): () => void {
  void outbox.start({ server: server(), userId });
  const closing = new AbortController();
  const { signal } = closing;
  const hurry = () => !document.hidden && outbox.retry();
  window.addEventListener("online", hurry, { signal });
  window.addEventListener("focus", hurry, { signal });
  document.addEventListener("visibilitychange", hurry, { signal });
  window.addEventListener("beforeunload", warn, { signal });
  return () => {
    closing.abort();
    outbox.stop();
  };
}

/** Asks before closing a page with entries that the browser could not store. */
function warn(event: BeforeUnloadEvent): void {
  if (unsent.get().some(({ lasts }) => !lasts)) event.preventDefault();
}

/** What is not sent yet in a conversation. */
export function unsentIn(items: readonly Item[], conversationId: string): readonly Item[] {
  return items.filter(({ entry }) => entry.conversationId === conversationId);
}

/** The conversation to which the text goes that comes back; null for a new one with the same agent. */
export function placeOf({ conversationId }: OutgoingMessage, error?: unknown): string | null {
  const isGone = error instanceof ApiError && error.code === "CONVERSATION_NOT_FOUND";
  return isGone ? null : conversationId;
}

/** The draft for a message, or for another version of one. */
export function draftKeyOf(conversationId: string, editedId?: string): string {
  return editedId === undefined ? conversationId : `${conversationId}.${editedId}`;
}

/** Sends something and waits until the server has it: true; false if its user took it back. A refusal is thrown. */
export function deliver(written: NewEntry): Promise<boolean> {
  const entry = outbox.prepare(written);
  return new Promise((resolve, reject) => {
    const unlisten = outbox.on((event) => {
      if (event.entry.id !== entry.id || event.type === "waiting" || event.type === "created") return;
      unlisten();
      if (event.type === "refused") reject(event.error);
      else resolve(event.type === "sent");
    });
    void outbox.add(entry);
  });
}

/** A file as the page shows it before the server has it: by name. */
export function shownFile({ key, fileName, size, kept }: OutgoingFile): KeptFile {
  return kept ?? { fileId: key, fileName, mediaType: "", size, width: null, height: null };
}

function giveBack(entry: Entry, error?: unknown): void {
  if (entry.kind !== "message") return;
  const place = placeOf(entry, error);
  const draftKey = place === null ? `new.${entry.agentId ?? ""}` : draftKeyOf(place, entry.edited?.id);
  returnDraft(draftKey, entry.content);
  keepFiles(draftKey, entry.files.flatMap(({ kept }) => (kept ? [kept] : [])));
  const sources = entry.files.flatMap((it) => (it.kept || !it.source ? [] : [asFile(it)]));
  if (sources.length) void import("./uploads").then(({ attach }) => attach(draftKey, sources));
}

function asFile({ source, fileName, mediaType }: OutgoingFile): File {
  return source instanceof File ? source : new File([source!], fileName, { type: mediaType });
}

async function uploaded(file: OutgoingFile): Promise<KeptFile> {
  const { arrivalOf, uploadFile } = await import("./uploads").catch(() => {
    throw new Unreachable(file.fileName);
  });
  return (await arrivalOf(file.key)) ?? uploadFile(asFile(file));
}

async function create(agentId: string | null, key: string): Promise<{ id: string; conversation: ConversationView }> {
  const chosen = agentId ?? (await defaultAgent());
  const conversation = await once<ConversationView>(`/api/agents/${chosen}/conversations`, {}, key);
  return { id: conversation.id, conversation };
}

async function defaultAgent(): Promise<string> {
  // A user who is quicker than the list of agents waits for it once.
  if (!agents.get().length) await refreshAgents();
  const agent = chosenAgent(agents.get(), null);
  if (!agent) throw new ApiError(404, "AGENT_NOT_FOUND", "");
  return agent.id;
}

/** The requested agent, even if it isn't in the list yet; never another one. */
export function chosenAgent(all: readonly AgentView[], id: string | null): AgentView | undefined {
  return id === null ? (all.find((it) => it.isDefault) ?? all[0]) : all.find((it) => it.id === id);
}

function post(entry: Entry): Promise<SentView> {
  // The same answer a second time changes nothing, so that the server needs no key.
  if (entry.kind === "answer") return once(`/api/turns/${entry.turnId}/approvals/${entry.requestId}`, entry.body, entry.id);
  const { id, conversationId, content, files, tip, edited, whenBusy } = entry;
  const body: MessageBody = {
    content,
    ...(files.length && { files: files.flatMap(({ kept }) => (kept ? [kept.fileId] : [])) }),
    ...(tip !== undefined && { tip }),
    ...(edited && { parentId: edited.parentId }),
    ...(whenBusy && { whenBusy }),
  };
  return once(`/api/conversations/${conversationId}/messages`, body, id);
}

/** A request that can be repeated, and is if nothing comes back in time. */
function once<T>(path: string, body: object, key: string): Promise<T> {
  return send<T>("POST", path, body, { "Idempotency-Key": key }, AbortSignal.timeout(PATIENCE_MS));
}

function failureIn(error: unknown): Failure {
  if (!(error instanceof ApiError)) return { kind: "unreachable" };
  const { status, code, retryAfterMs } = error;
  return { kind: "refused", status, code, retryAfterMs };
}

function missingFile(error: unknown): string | null {
  if (!(error instanceof ApiError) || error.code !== "FILE_NOT_FOUND") return null;
  return (error.details as { fileId?: string } | null)?.fileId ?? null;
}
