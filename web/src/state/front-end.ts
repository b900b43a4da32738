/** What the page keeps for its user: lists, open conversations, and what they send; what is refused returns to its draft. */

import {
  ApiError,
  FrontEnd,
  Unreachable,
  type KeptFile,
  type MeView,
  type OutboxEntry,
  type OutgoingFile,
  type OutgoingMessage,
  type Thread,
} from "@threadkeep/client";

import { api, ME, platform } from "../api/api";
import { checkInstallation, installation } from "../api/installation";
import { copies } from "../offline/device-copies";
import { agents, chosenAgent, loadUnknownAgents, refreshAgents } from "./agents";
import { keepFiles, markExpired } from "./attachments";
import { briefings, refreshBriefings } from "./briefings";
import { draftKeyOf, joinReturned, newDraftKey, returnDraft } from "./drafts";

export const frontEnd = new FrontEnd({ api, platform: { ...platform, copies }, upload, defaultAgentId, installation: installationThere });
export const { approvals, conversations, outbox } = frontEnd;

/** Reads agents that a conversation names, and returns to its draft what the server refuses. */
export function followFrontEnd(): void {
  conversations.state.subscribe(() => loadUnknownAgents(conversations.state.get().items.map((it) => it.agentId)));
  outbox.on((event) => {
    if (event.type !== "refused" && event.type !== "withdrawn") return;
    const error = event.type === "refused" ? event.error : undefined;
    if (event.isElsewhere) joinDraft(event.entry, error);
    else returnToDraft(event.entry, error);
  });
}

/** A conversation as this page opens it. */
export function openThread(id: string): Thread {
  return frontEnd.open(id, { onFileMissing: markExpired });
}

/** Sends as this user and keeps their lists up to date, until the returned function is called. */
export function startFrontEnd(me: Pick<MeView, "id"> & Partial<MeView>): () => void {
  void frontEnd.start(me.id, installation || me.installation);
  frontEnd.keepFresh(refreshBriefings, ({ type }) => type.startsWith("briefing_"));
  window.addEventListener("beforeunload", warn);
  return () => {
    window.removeEventListener("beforeunload", warn);
    frontEnd.stop();
    // The next user must not see them, not even while theirs load.
    briefings.set(null);
    agents.set([]);
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

function draftOf(entry: OutgoingMessage, error: unknown): string {
  const conversationId = returnsTo(entry, error);
  return conversationId === null ? newDraftKey(entry.agentId) : draftKeyOf(conversationId, entry.edited?.id);
}

/** Another tab has returned it. */
function joinDraft(entry: OutboxEntry, error: unknown): void {
  if (entry.kind === "message") joinReturned(draftOf(entry, error), entry.content);
}

function returnToDraft(entry: OutboxEntry, error: unknown): void {
  if (entry.kind !== "message") return;
  const draftKey = draftOf(entry, error);
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

/** The id of the server that responds; if it is another one, its own page is shown. */
async function installationThere(): Promise<string> {
  const me = await api.get<MeView>(ME);
  checkInstallation(me);
  return me.installation;
}

async function defaultAgentId(): Promise<string> {
  // A user who is quicker than the list of agents waits for it once.
  if (!agents.get().length) await refreshAgents();
  const agent = chosenAgent(agents.get(), null);
  if (!agent) throw new ApiError(404, "AGENT_NOT_FOUND", "");
  return agent.id;
}
