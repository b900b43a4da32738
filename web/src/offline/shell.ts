/** The page itself, so that it opens without its server. `worker/` keeps its files. */

import { idle } from "../state/copies";

/** The operator decides; a page that Vite serves has no worker. */
export const isForOfflineUse = () => document.documentElement.dataset["offline"] === "True";

/** Has the browser keep the page, or remove it where the server no longer wants that. Without TLS it can't. */
export async function keepShell(): Promise<void> {
  const workers = navigator.serviceWorker as ServiceWorkerContainer | undefined;
  if (!workers) return;
  if (isForOfflineUse()) {
    if (document.readyState !== "complete") await new Promise((loaded) => window.addEventListener("load", loaded, { once: true }));
    await idle();
    // Its scope is the page's folder. Never from the browser's cache: it decides which release is shown.
    await workers.register(new URL("service-worker.js", document.baseURI), { updateViaCache: "none" });
  } else {
    // The server has a worker that removes itself: it replaces ours.
    await (await workers.getRegistration(document.baseURI))?.update();
  }
}

