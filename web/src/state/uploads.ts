/** Uploads files, each in its own request, so that a rejected one doesn't affect the others. */

import { freshKey, problemOf, uploadFile as uploadTo, type KeptFile } from "@threadkeep/client";
import { reportingFetch } from "@threadkeep/client/browser";

import { api } from "../api/api";
import { attachmentsOf, type Attachment } from "./attachments";
import { seedPreview } from "./previews";

/** The server's limit for a message. */
export const MOST_FILES = 20;
/** A browser has six connections to a server that speaks HTTP/1.1; events and messages need some of them. */
const AT_ONCE = 3;

const waiting: (() => Promise<void>)[] = [];
const cancels = new Map<string, AbortController>();
/** The uploads under way: a message that was sent meanwhile waits for them. */
const arrivals = new Map<string, Promise<KeptFile | null>>();
let running = 0;

/** Adds files to a draft and uploads them; returns how many didn't fit. */
export function attach(draftKey: string, files: readonly File[]): number {
  const room = Math.max(0, MOST_FILES - attachmentsOf(draftKey).get().length);
  const added = files.slice(0, room).map(begun);
  attachmentsOf(draftKey).update((all) => [...all, ...added]);
  for (const it of added) enqueue(draftKey, it);
  return files.length - added.length;
}

/** The file of an upload under way, even if it has left its draft; null if there is none, or it fails. */
export async function arrivalOf(key: string): Promise<KeptFile | null> {
  return arrivals.get(key) ?? null;
}

/** Uploads a file that belongs to no draft. */
export async function uploadFile(source: File): Promise<KeptFile> {
  return uploadTo(api, source);
}

/** Takes a file out of a draft, also one that is on its way. */
export function detach(draftKey: string, { key, localUrl, status }: Attachment): void {
  cancels.get(key)?.abort();
  // The preview of one that has arrived may be shown elsewhere.
  if (localUrl && status.state !== "ready") URL.revokeObjectURL(localUrl);
  attachmentsOf(draftKey).update((all) => all.filter((it) => it.key !== key));
}

export function retry(draftKey: string, attachment: Attachment): void {
  change(draftKey, attachment.key, { status: { state: "uploading", progress: 0 } });
  enqueue(draftKey, attachment);
}

function begun(source: File): Attachment {
  return {
    key: freshKey(),
    fileName: source.name,
    mediaType: source.type,
    size: source.size,
    status: { state: "uploading", progress: 0 },
    source,
    localUrl: source.type.startsWith("image/") ? URL.createObjectURL(source) : null,
  };
}

function change(draftKey: string, key: string, changes: Partial<Attachment>): void {
  attachmentsOf(draftKey).update((all) => all.map((it) => (it.key === key ? { ...it, ...changes } : it)));
}

function enqueue(draftKey: string, { key, source, localUrl }: Attachment): void {
  if (!source) return;
  const cancel = new AbortController();
  cancels.set(key, cancel);
  waiting.push(async () => {
    // A user who has signed in meanwhile must not upload what somebody else chose.
    const isWanted = attachmentsOf(draftKey).get().some((it) => it.key === key);
    if (cancel.signal.aborted || !isWanted) return;
    const onProgress = (progress: number) => change(draftKey, key, { status: { state: "uploading", progress } });
    try {
      const arriving = uploadTo(api, source, { fetch: reportingFetch(onProgress), signal: cancel.signal });
      arrivals.set(key, arriving.catch(() => null));
      const file = await arriving;
      if (localUrl && file.width) seedPreview(file.fileId, localUrl);
      const { fileName, mediaType, size } = file;
      change(draftKey, key, { fileName, mediaType, size, status: { state: "ready", file } });
    } catch (error) {
      if (!cancel.signal.aborted) change(draftKey, key, { status: { state: "failed", problem: problemOf(error) } });
    } finally {
      cancels.delete(key);
      arrivals.delete(key);
    }
  });
  void work();
}

async function work(): Promise<void> {
  if (running >= AT_ONCE) return;
  running++;
  for (let next = waiting.shift(); next; next = waiting.shift()) await next();
  running--;
}
