/** The user's imports: an upload goes on while the user is elsewhere in the page, an import also when the page is closed. */

import { ApiError, requestProblemOf, Store, type ImportView, type PageView_ImportView, type Problem } from "@threadkeep/client";
import { reportingFetch } from "@threadkeep/client/browser";

import { api } from "../api/api";
import { go, route } from "../state/route";
import { session } from "../state/session";
import { toast } from "../ui/toasts";
import { importWords as inLanguages } from "../words/imports";
import { language } from "../words/language";
import { summaryOf } from "./summary";

const LOOK_EVERY_MS = 1000;

export interface Upload {
  file: File;
  /** How much of it was sent, from 0 to 1. */
  share: number;
}

/** Why a file was refused. `reason` is the server's word for it, `most` the largest size that it accepts. */
export interface Refusal extends Problem {
  reason?: string;
  most?: number;
}

interface Imports {
  upload: Upload | null;
  refusal: Refusal | null;
  /** The latest first; null until they are known. */
  runs: readonly ImportView[] | null;
  /** The run that the user has asked to stop. */
  stopping: string | null;
}

const NONE: Imports = { upload: null, refusal: null, runs: null, stopping: null };

export const imports = new Store<Imports>(NONE);

let uploading = new AbortController();
let followed: AbortController | null = null;

/** What one user imports is nothing for the next one. */
function forgetWithSession(): void {
  if (session.get().state === "in") return;
  uploading.abort();
  followed?.abort();
  followed = null;
  imports.set(NONE);
}

export async function loadImports(): Promise<void> {
  session.subscribe(forgetWithSession);
  try {
    const { items } = await api.get<PageView_ImportView>("/api/imports");
    change({ runs: items });
    follow();
  } catch (error) {
    change({ refusal: requestProblemOf(error) });
  }
}

export async function beginImport(file: File, agentId: string | null): Promise<void> {
  if (imports.get().upload) return;
  uploading = new AbortController();
  const { signal } = uploading;
  change({ upload: { file, share: 0 }, refusal: null });
  window.addEventListener("beforeunload", askToStay);
  const body = new FormData();
  body.append("files", file);
  const fetch = reportingFetch((share) => !signal.aborted && change({ upload: { file, share } }));
  try {
    const response = await api.request("/api/imports", { method: "POST", query: { agentId }, body, fetch, signal });
    add((await response.json()) as ImportView);
    follow();
  } catch (error) {
    if (signal.aborted) return;
    change({ refusal: refusalOf(error) });
    if (error instanceof ApiError && error.code === "IMPORT_IN_PROGRESS") void loadImports();
  } finally {
    window.removeEventListener("beforeunload", askToStay);
    if (!signal.aborted) change({ upload: null });
  }
}

export function cancelUpload(): void {
  uploading.abort();
  change({ upload: null });
}

export async function stopImport({ id }: ImportView): Promise<void> {
  change({ stopping: id });
  try {
    add(await api.send<ImportView>("POST", `/api/imports/${id}/stop`));
    follow();
  } catch (error) {
    change({ stopping: null, refusal: requestProblemOf(error) });
  }
}

/** Looks at the run in progress until it has ended, and says so wherever the user is then. */
function follow(): void {
  const running = imports.get().runs?.find((it) => it.status === "RUNNING");
  if (!running || followed) return;
  const { signal } = (followed = new AbortController());
  void (async () => {
    let run = running;
    while (run.status === "RUNNING" && !signal.aborted) {
      await api.pause(LOOK_EVERY_MS, signal);
      try {
        run = await api.get<ImportView>(`/api/imports/${run.id}`, {}, signal);
      } catch (error) {
        if (error instanceof ApiError) break; // forgotten by the server; otherwise it comes back
        continue;
      }
      add(run);
    }
    if (signal.aborted) return;
    followed = null;
    change({ stopping: null });
    if (run.status !== "RUNNING" && route.get().name !== "import") announce(run);
  })();
}

function announce(run: ImportView): void {
  const importWords = inLanguages[language.get()];
  toast(summaryOf(run, importWords, language.get()), { label: importWords.show, run: () => go({ name: "import" }) });
}

function add(run: ImportView): void {
  imports.update((now) => {
    const runs = now.runs ?? [];
    const isKnown = runs.some((it) => it.id === run.id);
    return { ...now, runs: isKnown ? runs.map((it) => (it.id === run.id ? run : it)) : [run, ...runs] };
  });
}

function change(changes: Partial<Imports>): void {
  imports.update((now) => ({ ...now, ...changes }));
}

function refusalOf(error: unknown): Refusal {
  const details = error instanceof ApiError ? (error.details as { reason?: string; most?: number } | undefined) : undefined;
  return { ...requestProblemOf(error), reason: details?.reason, most: details?.most };
}

function askToStay(event: BeforeUnloadEvent): void {
  event.preventDefault();
}
