/** The outbox of this page: it sends what the user writes, and returns what the server refuses to its draft. */

import {
  ApiError,
  Outbox,
  Unreachable,
  serverTransport,
  type KeptFile,
  type OutboxEntry,
  type OutboxTabMessage,
  type OutgoingFile,
  type OutgoingMessage,
} from "@threadkeep/client";

import { api } from "../api/api";
import { agents, chosenAgent, refreshAgents } from "./agents";
import { keepFiles } from "./attachments";
import { draftKeyOf, newDraftKey, returnDraft } from "./drafts";
import { IndexedDbStore } from "./indexed-db-store";

/** Tabs of other servers below another path are not concerned. */
const server = () => new URL(".", document.baseURI).href;
const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(`threadkeep.outbox.${server()}`);

export const outbox = new Outbox({
  store: new IndexedDbStore(),
  transport: serverTransport(api, { upload, defaultAgentId }),
  tabs: {
    alone: (name, work) => (navigator.locks ? navigator.locks.request(`threadkeep.outbox.${server()}${name}`, work) : work()),
    tell: (message) => channel?.postMessage(message),
  },
  pause: api.pause,
});

channel?.addEventListener("message", ({ data }: MessageEvent) => void outbox.heard(data as OutboxTabMessage));
outbox.on((event) => {
  if (event.type === "refused") returnToDraft(event.entry, event.error);
  if (event.type === "withdrawn") returnToDraft(event.entry);
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
  if (outbox.items.get().some(({ lasts }) => !lasts)) event.preventDefault();
}

/** The conversation to which a message's text returns; null for a new one with the same agent. */
export function returnsTo({ conversationId }: OutgoingMessage, error?: unknown): string | null {
  const isGone = error instanceof ApiError && error.code === "CONVERSATION_NOT_FOUND";
  return isGone ? null : conversationId;
}

function returnToDraft(entry: OutboxEntry, error?: unknown): void {
  if (entry.kind !== "message") return;
  const conversationId = returnsTo(entry, error);
  const draftKey = conversationId === null ? newDraftKey(entry.agentId) : draftKeyOf(conversationId, entry.edited?.id);
  returnDraft(draftKey, entry.content);
  keepFiles(draftKey, entry.files.flatMap(({ kept }) => (kept ? [kept] : [])));
  const sources = entry.files.flatMap((it) => (it.kept || !it.source ? [] : [asFile(it)]));
  if (sources.length) void import("./uploads").then(({ attach }) => attach(draftKey, sources));
}

function asFile({ source, fileName, mediaType }: OutgoingFile): File {
  return source instanceof File ? source : new File([source!], fileName, { type: mediaType });
}

async function upload(file: OutgoingFile): Promise<KeptFile> {
  const { arrivalOf, uploadFile } = await import("./uploads").catch(() => {
    throw new Unreachable(file.fileName);
  });
  return (await arrivalOf(file.key)) ?? uploadFile(asFile(file));
}

async function defaultAgentId(): Promise<string> {
  // A user who is quicker than the list of agents waits for it once.
  if (!agents.get().length) await refreshAgents();
  const agent = chosenAgent(agents.get(), null);
  if (!agent) throw new ApiError(404, "AGENT_NOT_FOUND", "");
  return agent.id;
}
