/** The files of each draft: uploading, uploaded or failed. Uploaded ones outlive a reload. */

import { Store, type KeptFile, type OutgoingFile, type Problem } from "@threadkeep/client";

import { keyHere } from "../api/installation";

export interface Attachment {
  /** Identifies it on this page. */
  key: string;
  fileName: string;
  mediaType: string;
  size: number;
  status: { state: "uploading"; progress: number } | { state: "ready"; file: KeptFile } | { state: "failed"; problem: Problem };
  /** Uploaded again after a failure; lost with a reload. */
  source: File | null;
  /** Shows an image while it is uploading. */
  localUrl: string | null;
}

const PREFIX = keyHere("draft-files.");
const NONE: readonly Attachment[] = [];

const byDraft = new Map<string, Store<readonly Attachment[]>>();
/** Files that the server no longer has. */
const expired = new Map<string, Problem>();

export function attachmentsOf(draftKey: string): Store<readonly Attachment[]> {
  const known = byDraft.get(draftKey);
  if (known) return known;
  const store = new Store<readonly Attachment[]>(readKept(draftKey).map(attachmentOf));
  store.subscribe(() => write(draftKey, store.get()));
  byDraft.set(draftKey, store);
  return store;
}

/** Another tab may return a message with its files. */
export function followReturnedFiles(): void {
  window.addEventListener("storage", ({ key }) => {
    const draftKey = key?.startsWith(PREFIX) ? key.slice(PREFIX.length) : "";
    byDraft.get(draftKey)?.update((all) => [...readKept(draftKey).map(attachmentOf).map(marked), ...all.filter((it) => it.status.state !== "ready")]);
  });
}

/** The files that the server has. */
function readyFiles(attachments: readonly Attachment[]): KeptFile[] {
  return attachments.flatMap(({ status }) => (status.state === "ready" ? [status.file] : []));
}

/** Whether a message can't include it: the server refused it, or its content is lost. Without a connection, the outbox uploads it. */
export function isStuck({ status, source }: Attachment): boolean {
  return status.state === "failed" && !(source && status.problem.code === "UNREACHABLE");
}

/** The files as the outbox takes them, including those still uploading. */
export function outgoingFiles(attachments: readonly Attachment[]): OutgoingFile[] {
  return attachments.map(({ key, fileName, mediaType, size, status, source }) => {
    return { key, fileName, mediaType, size, kept: status.state === "ready" ? status.file : null, source };
  });
}

/** Gives a draft files that the server has. */
export function keepFiles(draftKey: string, files: readonly KeptFile[]): void {
  putBack(draftKey, files.map(attachmentOf));
}

/** Removes a draft's attachments. */
export function dropAttachments(draftKey: string): void {
  attachmentsOf(draftKey).set(NONE);
}

/** Removes those that were sent, but not what has been added since. */
export function dropSentFiles(draftKey: string, sent: readonly Attachment[]): void {
  const keys = new Set(sent.map(({ key }) => key));
  attachmentsOf(draftKey).update((all) => (keys.size ? all.filter(({ key }) => !keys.has(key)) : all));
}

function putBack(draftKey: string, attachments: readonly Attachment[]): void {
  attachmentsOf(draftKey).update((all) => [...attachments.map(marked), ...all]);
}

/** Marks a file in whichever draft has it. */
export function markExpired(fileId: string, problem: Problem): void {
  expired.set(fileId, problem);
  for (const store of byDraft.values()) store.update((all) => (all.some(isExpired) ? all.map(marked) : all));
}

/** Forgets what only this tab knows. */
export function forgetUnkept(): void {
  byDraft.clear();
  expired.clear();
}

/** Forgets what this browser has, also of other tabs. */
export function forgetAttachments(): void {
  for (const store of byDraft.values()) store.set(NONE);
  forgetUnkept();
  for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
}

function attachmentOf(file: KeptFile): Attachment {
  const { fileId, fileName, mediaType, size } = file;
  return { key: fileId, fileName, mediaType, size, status: { state: "ready", file }, source: null, localUrl: null };
}

function isExpired({ status }: Attachment): boolean {
  return status.state === "ready" && expired.has(status.file.fileId);
}

function marked(attachment: Attachment): Attachment {
  if (attachment.status.state !== "ready" || !isExpired(attachment)) return attachment;
  return { ...attachment, status: { state: "failed", problem: expired.get(attachment.status.file.fileId)! } };
}

function readKept(draftKey: string): KeptFile[] {
  try {
    return JSON.parse(localStorage.getItem(PREFIX + draftKey) ?? "[]") as KeptFile[];
  } catch {
    return [];
  }
}

function write(draftKey: string, attachments: readonly Attachment[]): void {
  const files = readyFiles(attachments);
  const text = JSON.stringify(files);
  const key = PREFIX + draftKey;
  if (text === (localStorage.getItem(key) ?? "[]")) return;
  try {
    if (files.length) localStorage.setItem(key, text);
    else localStorage.removeItem(key);
  } catch {
    // The browser has no room: they are kept for as long as the page is open.
  }
}
