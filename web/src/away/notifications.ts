/** The browser's notifications, if the user wants them. */

import { Store } from "@threadkeep/client";

import { shellWorker } from "../offline/shell";
import { followKey, store } from "../offline/storage";

const CHOICE = "threadkeep.notifications";

/** Null until the user has decided. */
export type Choice = "on" | "off" | null;

function keptChoice(): Choice {
  const kept = localStorage.getItem(CHOICE);
  return kept === "on" || kept === "off" ? kept : null;
}

/** The user's choice in this browser. */
export const choice = new Store<Choice>(keptChoice());

/** Follows what the user chooses in other tabs, until the returned function is called. */
export const followChoice = () => followKey(CHOICE, () => choice.set(keptChoice()));

export function choose(next: "on" | "off"): void {
  store(CHOICE, next);
  choice.set(next);
}

/** Without TLS, browsers have none. */
export const isSupported = () => "Notification" in window && isSecureContext;

export const isBlocked = () => Notification.permission === "denied";

/** Asks the browser, which asks the user; whether both agree. */
export async function turnOn(): Promise<boolean> {
  const isGranted = (await Notification.requestPermission()) === "granted";
  choose(isGranted ? "on" : "off");
  return isGranted;
}

const shown = new Set<Notification>();

/** Where a notification leads. */
export interface Told {
  href: string;
  /** The request that waits there. */
  requestId?: string;
}

interface Telling {
  title: string;
  body: string;
  /** A later one with the same tag replaces it. */
  tag: string;
  told: Told;
}

/** What a click does, in whichever tab. */
let open: (told: Told) => void = () => {};

/** Calls `listener` when the user clicks on a notification, until the returned function is called. */
export function whenOpened(listener: (told: Told) => void): () => void {
  open = listener;
  const hear = ({ data }: MessageEvent<{ opened?: Told } | null>) => data?.opened && listener(data.opened);
  navigator.serviceWorker?.addEventListener("message", hear);
  return () => navigator.serviceWorker?.removeEventListener("message", hear);
}

export function notify({ title, told, ...options }: Telling): void {
  if (choice.get() !== "on" || !isSupported() || Notification.permission !== "granted") return;
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]")?.href;
  try {
    const notification = new Notification(title, { ...options, icon });
    shown.add(notification);
    notification.onclick = () => {
      window.focus();
      notification.close();
      open(told);
    };
    notification.onclose = () => shown.delete(notification);
  } catch {
    // Android shows only notifications of service workers; ours hears the click.
    void shellWorker().then((it) => it?.showNotification(title, { ...options, icon, data: told })).catch(() => {});
  }
}

/** The user is back and sees for themselves. */
export function closeNotifications(): void {
  for (const it of [...shown]) it.close();
  shown.clear();
  void shellWorker().then(async (it) => (await it?.getNotifications())?.forEach((one) => one.close())).catch(() => {});
}
