/** What was typed and not yet sent, for each conversation. */

import { useSyncExternalStore } from "react";

import { keyHere } from "../api/installation";

const PREFIX = keyHere("draft.");
/** Storing takes longer than a keystroke, so it waits until the user pauses or leaves. */
const WRITE_AFTER_MS = 400;

/** The draft for a message, or for another version of one. */
export function draftKeyOf(conversationId: string, editedId?: string): string {
  return editedId === undefined ? conversationId : `${conversationId}.${editedId}`;
}

/** The draft for a new conversation with an agent; null for the default one. */
export function newDraftKey(agentId: string | null): string {
  return `new.${agentId ?? ""}`;
}

const unwritten = new Map<string, string>();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setTimeout> | null = null;

export function readDraft(key: string): string {
  return unwritten.get(key) ?? localStorage.getItem(PREFIX + key) ?? "";
}

/** The current draft, also when something else changes it. */
export function useDraft(key: string): string {
  return useSyncExternalStore(subscribe, () => readDraft(key));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function keepDraft(key: string, text: string): void {
  unwritten.set(key, text);
  for (const listener of [...listeners]) listener();
  if (timer !== null) clearTimeout(timer);
  timer = setTimeout(writeDrafts, WRITE_AFTER_MS);
}

/** Restores a rejected message before what has been typed since; it is stored at once. */
export function returnDraft(key: string, text: string): void {
  keepDraft(key, [text, readDraft(key)].filter(Boolean).join("\n\n"));
  writeDrafts();
}

/** Another tab has returned a message to a draft; what is typed here would be written over it. */
export function joinReturned(key: string, text: string): void {
  if (unwritten.has(key) && !readDraft(key).includes(text)) returnDraft(key, text);
}

/** Removes what was sent, but not what has been typed since; the outbox has it by now. */
export function dropSent(key: string, sent: string): void {
  const draft = readDraft(key).trimStart();
  if (!draft.startsWith(sent)) return;
  keepDraft(key, draft.slice(sent.length).trimStart());
  writeDrafts();
}

export function forgetDraft(key: string): void {
  keepDraft(key, "");
}

function writeDrafts(): void {
  for (const [key, text] of unwritten) {
    try {
      if (text) localStorage.setItem(PREFIX + key, text);
      else localStorage.removeItem(PREFIX + key);
      unwritten.delete(key);
    } catch {
      // Too long for the browser: it lasts as long as the page is open.
    }
  }
}

/** Writes drafts before the page is left, and shows what other tabs write. */
export function followDrafts(): void {
  window.addEventListener("pagehide", writeDrafts);
  // Another tab may return a message to a draft that both have open.
  window.addEventListener("storage", ({ key }) => {
    if (key?.startsWith(PREFIX)) for (const listener of [...listeners]) listener();
  });
  document.addEventListener("visibilitychange", writeDrafts);
}

/** All drafts with a text, also of other tabs. */
export function draftKeys(): string[] {
  writeDrafts();
  const written = Object.keys(localStorage).filter((it) => it.startsWith(PREFIX));
  const keys = new Set([...written.map((it) => it.slice(PREFIX.length)), ...unwritten.keys()]);
  return [...keys].filter((it) => readDraft(it).trim());
}

/** Forgets what only this tab knows. */
export function forgetUnwritten(): void {
  unwritten.clear();
}

/** Forgets what this browser has, also of other tabs. */
export function forgetDrafts(): void {
  forgetUnwritten();
  for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
}
