/** Opens the page without its server. It touches the page and its files, never the API, shares or previews.

A file's name contains the hash of its content, so whichever release it came with, it is the right one; and the page is
given only together with all files that it loads first. */

declare const self: ServiceWorkerGlobalScope;
/** Both are written by the build. */
declare const RELEASE: string;
declare const KEPT_FROM_START: readonly string[];

const FILES = KEPT_FROM_START;

/** The page: there may be other applications on this host, and other servers of ours. */
const PAGE = new URL(self.registration.scope);
const ASSETS = new URL("assets/", PAGE).pathname;
const OURS = `threadkeep.page ${PAGE.pathname} `;
const CACHE = OURS + RELEASE;

/** If the server takes longer for a page of 1 kB, the kept page is shown. */
const PATIENCE_MS = 4000;
/** With this status and above, a proxy responds for a server that is away. */
const AWAY = 502;

self.addEventListener("install", (event) => {
  event.waitUntil(install());
});

self.addEventListener("activate", (event) => {
  event.waitUntil(Promise.all([removeOldReleases(), self.clients.claim()]));
});

self.addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  const { origin, pathname } = new URL(url);
  if (method !== "GET" || origin !== PAGE.origin) return;
  if (mode === "navigate" && pathname === PAGE.pathname) event.respondWith(page(event));
  // The document of the sandbox has a policy that comes with each response.
  else if (pathname.startsWith(ASSETS) && !pathname.endsWith(".html")) event.respondWith(file(event));
});

/** Where a notification leads; `away/notifications.ts` has the same. */
interface Told {
  href: string;
  requestId?: string;
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data as Told));
});

/** Shows it in the tab that was used last, or in a new one. */
async function open(told: Told): Promise<void> {
  const all = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const tab = all.find((it) => new URL(it.url).pathname === PAGE.pathname);
  if (!tab) return void (await self.clients.openWindow(new URL(told.href, PAGE).href));
  tab.postMessage({ opened: told });
  await tab.focus();
}

/** All of it, or nothing: a worker whose installation fails does not replace the one before. */
async function install(): Promise<void> {
  const cache = await caches.open(CACHE);
  await cache.addAll(FILES.map((it) => new URL(it, PAGE).href));
  if (!(await keepPage(await fetch(PAGE, { cache: "no-cache" })))) throw new Error("The page belongs to another release");
  await self.skipWaiting();
}

/** Keeps the page as it is now, since the server writes into it; false if it needs other files than those kept. */
async function keepPage(response: Response): Promise<boolean> {
  if (!response.ok || response.redirected || !isOfThisRelease(await response.clone().text())) return false;
  await (await caches.open(CACHE)).put(PAGE, response);
  return true;
}

/** Not another release's page, a proxy's sign-in, or a network's own page. */
function isOfThisRelease(html: string): boolean {
  const needed = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.(?:js|css))"/g)].map(([, name]) => name!);
  return needed.length > 0 && needed.every((it) => FILES.includes(it));
}

/** The server's page, as long as there is a server; else the one that is kept. */
async function page(event: FetchEvent): Promise<Response> {
  const asked = fetch(event.request);
  event.waitUntil(asked.then((it) => keepPage(it.clone())).catch(() => {}));
  const kept = await (await caches.open(CACHE)).match(PAGE);
  if (!kept) return asked;
  const inTime = await Promise.race([asked.catch(() => null), pause(PATIENCE_MS)]);
  return inTime && inTime.status < AWAY ? inTime : kept;
}

function pause(ms: number): Promise<null> {
  return new Promise((resolve) => setTimeout(resolve, ms, null));
}

/** A file, of this release or of the one that a tab still shows; kept once it was used. */
async function file(event: FetchEvent): Promise<Response> {
  const kept = await caches.match(event.request, { ignoreVary: true });
  if (kept) return kept;
  const response = await fetch(event.request);
  if (response.ok) {
    const copy = response.clone();
    // If the browser has no room, it is asked for again.
    event.waitUntil(caches.open(CACHE).then((cache) => cache.put(event.request, copy)).catch(() => {}));
  }
  return response;
}

/** Removes all but the last one: tabs that show it may still need its files, which the server no longer has. */
async function removeOldReleases(): Promise<void> {
  const others = (await caches.keys()).filter((it) => it.startsWith(OURS) && it !== CACHE);
  await Promise.all(others.slice(0, -1).map((it) => caches.delete(it)));
}

export {};
