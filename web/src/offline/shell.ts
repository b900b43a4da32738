/** The page itself, so that it opens without its server. `worker/` keeps its files. */

import { idle } from "./idle";

/** The operator decides; a page that Vite serves has no worker. */
export const isForOfflineUse = () => document.documentElement.dataset["offline"] === "True";

/** Has the browser keep the page, or remove it where the server no longer wants that. Without TLS it can't. */
export async function keepShell(): Promise<void> {
  const workers = navigator.serviceWorker as ServiceWorkerContainer | undefined;
  if (!workers) return;
  if (!isForOfflineUse()) return removeShell();
  if (document.readyState !== "complete") await new Promise((loaded) => window.addEventListener("load", loaded, { once: true }));
  await idle();
  // Its scope is the page's folder. Never from the browser's cache: it decides which release is shown.
  await workers.register(new URL("service-worker.js", document.baseURI), { updateViaCache: "none" });
}

/** Our worker in this browser; a host application that we are part of may have one as well. */
export async function shellWorker(): Promise<ServiceWorkerRegistration | undefined> {
  const folder = new URL(".", document.baseURI).href;
  const found = await navigator.serviceWorker?.getRegistration(folder);
  return found?.scope === folder ? found : undefined;
}

/** Doesn't wait for the worker with which the server replaces ours: a busy one is replaced late.
    Until then ours may keep files again, which the next visit removes. */
async function removeShell(): Promise<void> {
  await (await shellWorker())?.unregister();
  const ours = `threadkeep.page ${new URL(".", document.baseURI).pathname} `; // as in `worker/`
  const names = await caches.keys();
  await Promise.all(names.filter((it) => it.startsWith(ours)).map((it) => caches.delete(it)));
}
