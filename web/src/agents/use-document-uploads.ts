import { ApiError, freshKey, problemOf, type DocumentView, type Problem } from "@threadkeep/client";
import { reportingFetch } from "@threadkeep/client/browser";
import { useCallback, useEffect, useRef, useState } from "react";

import { removeCancelled } from "../api/cancelled-upload";
import { api } from "../api/api";
import { useUnsaved } from "../state/unsaved";

export interface DocumentUpload {
  key: string;
  file: File;
  status:
    | { state: "waiting" }
    | { state: "uploading"; progress: number }
    /** `most`: the server's limit in bytes, if the file is too large. */
    | { state: "refused"; problem: Problem; most: number | null }
    | { state: "duplicate"; of: string };
}

/** A browser opens six connections to an HTTP/1.1 server; other requests need some of them. */
const AT_ONCE = 2;

/** Uploads files to an agent, each in its own request, so that a rejected one doesn't affect the others. */
export function useDocumentUploads(path: string, documents: readonly DocumentView[], onAdded: () => Promise<void>) {
  const [uploads, setUploads] = useState<readonly DocumentUpload[]>([]);
  const waiting = useRef<DocumentUpload[]>([]);
  const cancels = useRef(new Map<string, () => void>());
  /** Of cancelled uploads, by file: their documents are removed, unless the user adds the file again. */
  const removals = useRef(new Map<string, AbortController>());
  const running = useRef(0);
  // For a file that the agent already has, the response is its document: an older one, or another upload's.
  const known = useRef(new Set<string>());
  const acknowledged = useRef(new Set<string>());
  useEffect(() => {
    for (const { id } of documents) known.current.add(id);
  }, [documents]);
  useUnsaved(
    "documents",
    uploads.some(({ status }) => status.state === "waiting" || status.state === "uploading"),
  );
  useEffect(
    () => () => {
      waiting.current = [];
      for (const cancel of cancels.current.values()) cancel();
    },
    [],
  );

  const change = useCallback((key: string, status: DocumentUpload["status"] | null) => {
    setUploads((all) => all.flatMap((it) => (it.key !== key ? [it] : status ? [{ ...it, status }] : [])));
  }, []);

  const send = async ({ key, file }: DocumentUpload) => {
    const request = new AbortController();
    const removal = new AbortController();
    let isCancelled = false;
    let isSent = false;
    cancels.current.set(key, () => {
      isCancelled = true;
      removals.current.set(sameFile(file), removal);
      // The server may have accepted what was sent whole; its response says which document to remove.
      if (!isSent) request.abort();
    });
    const onProgress = (progress: number) => {
      isSent = progress === 1;
      change(key, { state: "uploading", progress });
    };
    onProgress(0);
    // The list may have the new document before this upload has its response.
    const before = new Set(known.current);
    const isNew = ({ id }: DocumentView) => !before.has(id) && !acknowledged.current.has(id);
    try {
      const document = await api.upload<DocumentView>(path, file, { fetch: reportingFetch(onProgress), signal: request.signal });
      const isAdded = isNew(document);
      if (isCancelled) {
        if (isAdded) void remove(({ id }) => id === document.id, removal.signal);
        return;
      }
      acknowledged.current.add(document.id);
      if (isAdded) await onAdded();
      change(key, isAdded ? null : { state: "duplicate", of: document.fileName });
    } catch (error) {
      if (!isCancelled) change(key, { state: "refused", problem: problemOf(error), most: mostIn(error) });
      else if (!(error instanceof ApiError))
        void remove((it) => it.fileName === file.name && it.size === file.size && isNew(it), removal.signal);
    } finally {
      cancels.current.delete(key);
    }
  };
  const remove = async (isIts: (document: DocumentView) => boolean, signal: AbortSignal) => {
    if (await removeCancelled(path, isIts, signal)) await onAdded();
  };
  const work = async () => {
    if (running.current >= AT_ONCE) return;
    running.current++;
    for (let next = waiting.current.shift(); next; next = waiting.current.shift()) await send(next);
    running.current--;
  };
  const enqueue = (added: readonly DocumentUpload[]) => {
    for (const { file } of added) removals.current.get(sameFile(file))?.abort();
    waiting.current.push(...added);
    for (let count = 0; count < AT_ONCE; count++) void work();
  };
  return {
    uploads,
    add: (files: readonly File[]) => {
      const added = files.map((file): DocumentUpload => ({ key: freshKey(), file, status: { state: "waiting" } }));
      setUploads((all) => [...all.filter(({ status }) => status.state !== "duplicate"), ...added]);
      enqueue(added);
    },
    retry: (it: DocumentUpload) => {
      change(it.key, { state: "waiting" });
      enqueue([it]);
    },
    /** Removes a file from the list; cancels its upload. */
    dismiss: ({ key }: DocumentUpload) => {
      waiting.current = waiting.current.filter((it) => it.key !== key);
      cancels.current.get(key)?.();
      change(key, null);
    },
  };
}

function sameFile({ name, size, lastModified }: File): string {
  return `${name} ${size} ${lastModified}`;
}

function mostIn(error: unknown): number | null {
  const details = error instanceof ApiError && error.code === "PAYLOAD_TOO_LARGE" ? error.details : null;
  const most = (details as { most?: unknown } | null)?.most;
  return typeof most === "number" ? most : null;
}
