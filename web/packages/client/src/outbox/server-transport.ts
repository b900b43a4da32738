/** Brings the outbox's entries to the server. */

import { type ApiClient } from "../api-client.ts";
import { defaultAgentId as serversDefaultAgentId } from "../default-agent.ts";
import { type ConversationView, type MeView, type MessageBody } from "../schema.ts";
import { uploadFile, type KeptFile } from "../turn/files.ts";
import { type OutboxEntry, type OutgoingFile } from "./entry.ts";
import { type OutboxTransport, type SentView } from "./ports.ts";

/** A server accepts a message within milliseconds; a connection that is silent for this long is dead. */
const PATIENCE_MS = 40_000;

export interface ServerTransportOptions {
  /** Uploads a file; a front end may have begun to. */
  upload?: (file: OutgoingFile) => Promise<KeptFile>;
  /** The id of the server that responds. */
  installation?: () => Promise<string | undefined>;
  /** The agent of a new conversation for which the user chose none; the server's default one if missing. */
  defaultAgentId?: () => Promise<string>;
}

export function serverTransport(api: ApiClient, options: ServerTransportOptions = {}): OutboxTransport {
  const {
    upload = ({ source }) => uploadFile(api, source!),
    defaultAgentId = () => serversDefaultAgentId(api),
    installation = async () => (await api.get<Partial<MeView>>("/api/me")).installation,
  } = options;
  /** A request that can be repeated, and is if nothing comes back in time. */
  const once = <T>(path: string, body: object, key: string): Promise<T> =>
    api.send<T>("POST", path, body, { "Idempotency-Key": key }, AbortSignal.timeout(PATIENCE_MS));
  return {
    upload,
    installation,
    create: async (agentId, key) =>
      once<ConversationView>(`/api/agents/${agentId ?? (await defaultAgentId())}/conversations`, {}, key),
    send: (entry) => once<SentView>(pathOf(entry), bodyOf(entry), entry.id),
  };
}

function pathOf(entry: OutboxEntry): string {
  if (entry.kind === "answer") return `/api/turns/${entry.turnId}/approvals/${entry.requestId}`;
  return `/api/conversations/${entry.conversationId}/messages`;
}

function bodyOf(entry: OutboxEntry): object {
  if (entry.kind === "answer") return entry.body;
  const { content, files, tip, edited, whenBusy, model, tools } = entry;
  const isSteering = whenBusy === "steer"; // the turn that it joins has its own
  const body: MessageBody = {
    content,
    ...(files.length && { files: files.flatMap(({ kept }) => (kept ? [kept.fileId] : [])) }),
    ...(tip !== undefined && { tip }),
    ...(edited && { parentId: edited.parentId }),
    ...(whenBusy && { whenBusy }),
    ...(model && !isSteering && { model }),
    ...(tools && !isSteering && { tools: [...tools] }),
  };
  return body;
}
