import { useCallback, useEffect, useRef, useState } from "react";

import { ApiError, freshKey } from "../api/client";
import { type DocumentView } from "../api/schema";
import { upload } from "../api/upload";
import { useUnsaved } from "../state/unsaved";
import { type Problem } from "../thread/reduce";
import { problemOf } from "../thread/thread";

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
  const cancels = useRef(new Map<string, AbortController>());
  const running = useRef(0);
  // For a file that the agent already has, the response is its document: an older one, or another upload's.
  const known = useRef(new Set<string>());
  const answered = useRef(new Set<string>());
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
      for (const cancel of cancels.current.values()) cancel.abort();
    },
    [],
  );

  const change = useCallback((key: string, status: DocumentUpload["status"] | null) => {
    setUploads((all) => all.flatMap((it) => (it.key !== key ? [it] : status ? [{ ...it, status }] : [])));
  }, []);

  const send = async ({ key, file }: DocumentUpload) => {
    const cancel = new AbortController();
    cancels.current.set(key, cancel);
    const onProgress = (progress: number) => change(key, { state: "uploading", progress });
    onProgress(0);
    // The list may have the new document before this upload has its response.
    const before = new Set(known.current);
    try {
      const { id, fileName } = await upload<DocumentView>(path, file, onProgress, cancel.signal);
      const isNew = !before.has(id) && !answered.current.has(id);
      answered.current.add(id);
      if (isNew) await onAdded();
      change(key, isNew ? null : { state: "duplicate", of: fileName });
    } catch (error) {
      if (cancel.signal.aborted) return;
      change(key, { state: "refused", problem: problemOf(error), most: mostIn(error) });
    } finally {
      cancels.current.delete(key);
    }
  };
  const work = async () => {
    if (running.current >= AT_ONCE) return;
    running.current++;
    for (let next = waiting.current.shift(); next; next = waiting.current.shift()) await send(next);
    running.current--;
  };
  const enqueue = (added: readonly DocumentUpload[]) => {
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
      cancels.current.get(key)?.abort();
      change(key, null);
    },
  };
}

function mostIn(error: unknown): number | null {
  const details = error instanceof ApiError && error.code === "PAYLOAD_TOO_LARGE" ? error.details : null;
  const most = (details as { most?: unknown } | null)?.most;
  return typeof most === "number" ? most : null;
}
